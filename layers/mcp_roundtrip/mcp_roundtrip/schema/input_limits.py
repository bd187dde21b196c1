"""Limits on what one input makes pydantic do: memory and time grow with its size only.

- Different values with one hash. Python randomizes the hashes of text only, and a set or dict of equal hashes
  takes quadratic time.
- Values in strings of JSON (`pydantic.Json`). The limit on the request does not count them.
- Time to choose the alternatives of unions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from sys import hash_info
from typing import Any, Final

from msgspec import Struct, field
from pydantic_core import PydanticCustomError, core_schema

from mcp_roundtrip.protocol.canonical import count_json_values

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_JSON_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

MAX_CHOOSING_US: Final = 500_000
"""Microseconds in which alternatives of unions are chosen for the values of a request."""

_RANDOMIZED: Final = frozenset({"str", "bytes", "date", "datetime", "time"})
"""Types whose hashes a client cannot know."""


class _Counts(Struct):
    """What one input has: values by their hashes, values in strings of JSON, time to choose alternatives."""

    by_hash: dict[int, set[int]] = field(default_factory=dict)
    json_values: int = 0
    choosing_us: int = 0


_counts: ContextVar[_Counts | None] = ContextVar("counts", default=None)
"""Those of the client's input that is read; None while a value of the author is read."""


class TooMuchWork(Exception):
    """The alternatives of unions take too long to be chosen."""


@contextmanager
def limited() -> Iterator[None]:
    """Limit what is read in the block, which is one input."""
    token = _counts.set(_Counts())
    try:
        yield
    finally:
        _counts.reset(token)


def limit_hashes(schema: dict[str, Any], member: str) -> dict[str, Any]:
    """Return a core schema that limits colliding hashes of the values that its `member` describes."""
    hashed = schema.get(member) or core_schema.any_schema()
    if hashed["type"] in _RANDOMIZED:
        return schema
    return {**schema, member: core_schema.no_info_after_validator_function(_limit_collisions, hashed)}


def _limit_collisions(value: Any) -> Any:
    counts = _counts.get()
    # A small integer is its own hash, so two of them do not collide.
    if counts is None or isinstance(value, str) or (type(value) is int and abs(value) < hash_info.modulus):
        return value
    try:
        colliding = counts.by_hash.setdefault(hash(value), set())
    except TypeError:  # not hashable; pydantic refuses it with a message of its own
        return value
    colliding.add(hash(repr(value)))
    if len(colliding) > MAX_COLLISIONS:
        raise PydanticCustomError(
            "equal_hashes",
            "More than {limit} different values have the same hash; send fewer at once",
            {"limit": MAX_COLLISIONS},
        )
    return value


def limit_choosing(microseconds: int) -> None:
    """Count time to choose an alternative. Raises TooMuchWork."""
    if (counts := _counts.get()) is not None:
        counts.choosing_us += microseconds
        if counts.choosing_us > MAX_CHOOSING_US:
            raise TooMuchWork


def limit_json_values(value: Any) -> Any:
    """Return a value. Raises PydanticCustomError for a text of JSON that has too many values."""
    counts = _counts.get()
    if isinstance(value, str) and counts is not None:
        counts.json_values += count_json_values(value, MAX_NESTED_JSON_VALUES)
        if counts.json_values > MAX_NESTED_JSON_VALUES:
            raise PydanticCustomError(
                "too_many_values",
                "More than {limit} values in strings of JSON; send fewer at once",
                {"limit": MAX_NESTED_JSON_VALUES},
            )
    return value
