"""Validation of inputs that are long enough to cost much memory or time.

The first invalid item ends the validation of a container, and a recursive type has one error at most. Three
things are limited:

- Numbers, UUIDs and Decimals with the same hash. Python randomizes the hashes of text only, and a set or dict
  of equal hashes takes quadratic time.
- Values in strings of JSON (`pydantic.Json`), which the limit on the request's body does not count.
- Long texts for large patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from sys import hash_info
from typing import Any, Final

from msgspec import Struct, field
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from mcp_roundtrip.canonical import count_json_values
from mcp_roundtrip.schema.core_schemas import transform, validator_of
from mcp_roundtrip.schema.patterns import TEXT_TOO_LONG, PatternBudget, TextTooLong

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_JSON_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

_CONTAINERS: Final = frozenset({"list", "set", "frozenset", "tuple", "dict"})

_HASHED: Final = {
    "set": "items_schema",
    "frozenset": "items_schema",
    "dict": "keys_schema",
    "counter": "keys_schema",
}
"""Types of core schemas that hash values -> the member that describes those values."""

_RANDOMIZED: Final = frozenset({"str", "bytes", "date", "datetime", "time"})
"""Types whose hashes a client cannot know."""


def fail_fast_validator(schema: Mapping[str, Any], recursive: Mapping[str, str]) -> SchemaValidator | None:
    """Return a validator for long inputs, or None if `schema` is one already.

    `recursive` are the references of recursive definitions, with the names of their types.
    """
    changed = transform(schema, partial(_fail_fast, recursive))
    return None if changed == schema else validator_of(changed)


@contextmanager
def input_budget() -> Iterator[None]:
    """Start a budget for what a validator of `fail_fast_validator` hashes, parses and matches."""
    token = _current.set(_InputBudget())
    try:
        yield
    finally:
        _current.reset(token)


class _InputBudget(Struct):
    """The hashes of one input's values, its values in strings of JSON, and the steps of its patterns."""

    by_hash: dict[int, set[int]] = field(default_factory=dict)
    json_values: int = 0
    patterns: PatternBudget = field(default_factory=PatternBudget)


_current: ContextVar[_InputBudget] = ContextVar("input_budget")


def _fail_fast(recursive: Mapping[str, str], copy: dict[str, Any]) -> dict[str, Any]:
    if copy.get("type") in _CONTAINERS:
        copy["fail_fast"] = True
    if copy.get("type") == "definition-ref" and (name := recursive.get(copy["schema_ref"])):
        return _with_one_error(copy, name)
    return _with_limits(copy)


def _with_one_error(schema: dict[str, Any], name: str) -> dict[str, Any]:
    message = f"Input should be a valid {name}; a smaller request lists what is wrong in it"
    return {
        "type": "custom-error",
        "schema": schema,
        "custom_error_type": "too_large_to_explain",
        "custom_error_message": message.replace("{", "{{").replace("}", "}}"),
    }


def _with_limits(schema: dict[str, Any]) -> dict[str, Any]:
    kind = str(schema.get("type"))
    if kind == "json":
        return _before(_limit_json_values, schema)
    if kind == "str" and "pattern" in schema:
        return _before(partial(_limit_matching, schema["pattern"], schema.get("max_length")), schema)
    if kind not in _HASHED:
        return schema
    hashed = schema.get(_HASHED[kind]) or core_schema.any_schema()
    if hashed["type"] in _RANDOMIZED:
        return schema
    return {**schema, _HASHED[kind]: core_schema.no_info_after_validator_function(_limit_collisions, hashed)}


def _before(check: Any, schema: Any) -> dict[str, Any]:
    return {**core_schema.no_info_before_validator_function(check, schema)}


def _limit_collisions(value: Any) -> Any:
    # A small integer is its own hash, so two of them do not collide.
    if isinstance(value, str) or (type(value) is int and abs(value) < hash_info.modulus):
        return value
    try:
        colliding = _current.get().by_hash.setdefault(hash(value), set())
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


def _limit_json_values(value: Any) -> Any:
    if isinstance(value, str):
        budget = _current.get()
        budget.json_values += count_json_values(value, MAX_NESTED_JSON_VALUES)
        if budget.json_values > MAX_NESTED_JSON_VALUES:
            raise PydanticCustomError(
                "too_many_values",
                "More than {limit} values in strings of JSON; send fewer at once",
                {"limit": MAX_NESTED_JSON_VALUES},
            )
    return value


def _limit_matching(pattern: str, max_length: int | None, value: Any) -> Any:
    if isinstance(value, str):
        try:
            # pydantic strips white space if it is configured to, then checks the length, then the pattern.
            _current.get().patterns.spend(pattern, value[:max_length])
        except TextTooLong:
            raise PydanticCustomError("text_too_long", TEXT_TOO_LONG) from None
    return value
