"""Limits that only a long input can reach: on equal hashes, on JSON within strings, and on patterns.

Python randomizes the hashes of text, but not those of numbers: a client can send thousands of integers, UUIDs
or Decimals with one hash, and a set or dict of them takes time that grows with the square of their number.
A string of JSON (`pydantic.Json`) brings values that the limit for a request's body does not count. A
pattern takes time that grows with its size and the text's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from sys import hash_info
from typing import Any, Final

from pydantic_core import PydanticCustomError, core_schema

from mcp_roundtrip.canonical import count_values
from mcp_roundtrip.schema.patterns import TOO_LONG, PatternBudget, TextTooLong

MAX_ALIKE: Final = 64
"""Different values with one hash that may be in the sets and keys of a request; two are rare by chance."""

MAX_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

_KEYS: Final = {
    "set": "items_schema",
    "frozenset": "items_schema",
    "dict": "keys_schema",
    "counter": "keys_schema",
}
"""Types of core schemas that hash, and the member for what they hash."""

_RANDOMIZED: Final = frozenset({"str", "bytes", "date", "datetime", "time"})
"""Types whose hashes a client cannot know."""


def limited(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema`, a node of a core schema, with the limits that its type needs."""
    if schema.get("type") == "json":
        return {**core_schema.no_info_before_validator_function(_few_values, schema)}
    if schema.get("type") == "str" and "pattern" in schema:
        within = partial(_within_budget, schema["pattern"], schema.get("max_length"))
        return {**core_schema.no_info_before_validator_function(within, schema)}
    member = _KEYS.get(str(schema.get("type")))
    keys = schema.get(member) if member else None
    if member is None or (keys and keys["type"] in _RANDOMIZED):
        return schema
    keys = keys or core_schema.any_schema()
    return {**schema, member: core_schema.no_info_after_validator_function(_few_alike, keys)}


@contextmanager
def counted() -> Iterator[None]:
    """Count what validators with `limited` schemas hash."""
    token = _counts.set(_Counts())
    try:
        yield
    finally:
        _counts.reset(token)


@dataclass(slots=True)
class _Counts:
    by_hash: dict[int, set[int]] = field(default_factory=dict)
    values: int = 0
    patterns: PatternBudget = field(default_factory=PatternBudget)


_counts: ContextVar[_Counts] = ContextVar("counts")


def _few_alike(value: Any) -> Any:
    # The hash of such an integer is the integer.
    if isinstance(value, str) or (type(value) is int and abs(value) < hash_info.modulus):
        return value
    try:
        alike = _counts.get().by_hash.setdefault(hash(value), set())
    except TypeError:  # pydantic refuses it with a message of its own
        return value
    alike.add(hash(repr(value)))
    if len(alike) > MAX_ALIKE:
        raise PydanticCustomError(
            "equal_hashes",
            "More than {limit} different values have the same hash; send fewer at once",
            {"limit": MAX_ALIKE},
        )
    return value


def _few_values(value: Any) -> Any:
    if isinstance(value, str):
        counts = _counts.get()
        counts.values += count_values(value, MAX_VALUES)
        if counts.values > MAX_VALUES:
            raise PydanticCustomError(
                "too_many_values",
                "More than {limit} values in strings of JSON; send fewer at once",
                {"limit": MAX_VALUES},
            )
    return value


def _within_budget(pattern: str, max_length: int | None, value: Any) -> Any:
    if isinstance(value, str):
        try:
            # pydantic checks the length first, after it has stripped white space where it is told to.
            _counts.get().patterns.spend(pattern, value[:max_length])
        except TextTooLong:
            raise PydanticCustomError("text_too_long", TOO_LONG) from None
    return value
