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
from pydantic_core import PydanticCustomError

from mcp_roundtrip.protocol.canonical import count_json_values

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_JSON_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

MAX_CHOOSING_US: Final = 500_000
"""Microseconds in which alternatives of unions are chosen for the values of a request."""


class _Counts(Struct):
    """What one input has: values by their hashes, values in strings of JSON, time to choose alternatives."""

    by_hash: dict[int, set[int]] = field(default_factory=dict)
    json_values: int = 0
    choosing_us: int = 0


_counts: ContextVar[_Counts | None] = ContextVar("counts", default=None)
"""Those of the client's input that is read; None while a value of the author is read."""


@contextmanager
def limited() -> Iterator[None]:
    """Limit what is read in the block, which is one input."""
    token = _counts.set(_Counts())
    try:
        yield
    finally:
        _counts.reset(token)


def limit_collisions(value: Any) -> Any:
    """Return a value for a set, or a key. Raises PydanticCustomError for too many that have its hash."""
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
        problem = f"More than {MAX_COLLISIONS} different values have the same hash; send fewer at once"
        raise PydanticCustomError("equal_hashes", problem)
    return value


def limit_choosing(microseconds: int) -> None:
    """Count time to choose an alternative. Raises PydanticCustomError, which ends the validation."""
    if (counts := _counts.get()) is not None:
        counts.choosing_us += microseconds
        if counts.choosing_us > MAX_CHOOSING_US:
            raise PydanticCustomError("choices", "Input has too many values for its alternatives; send fewer")


def limit_json_values(value: Any) -> Any:
    """Return a value. Raises PydanticCustomError for a text of JSON that has too many values."""
    counts = _counts.get()
    if isinstance(value, str) and counts is not None:
        counts.json_values += count_json_values(value, MAX_NESTED_JSON_VALUES)
        if counts.json_values > MAX_NESTED_JSON_VALUES:
            problem = f"More than {MAX_NESTED_JSON_VALUES} values in strings of JSON; send fewer at once"
            raise PydanticCustomError("too_many_values", problem)
    return value
