"""pydantic's validator for data that a JSON Schema has accepted: it makes the typed value.

The JSON Schema decides what counts. pydantic would decide some things differently, or take long for them, so
its core schema is changed:

- A boolean equals no number (JSON Schema core, 4.2.2). In a union, pydantic takes one for the other.
- 2.0 and 1e300 are integers.
- A union takes an alternative whose JSON Schema accepts the value (`union_choices`).
- A pattern of the JSON Schema is not matched again: two engines read `\\s` and `\\W` differently.
- The first invalid item ends the validation of a list, so that the number of errors is bounded.
- The alternatives that are compared with values are limited.
- Different values with one hash are limited. Python randomizes the hashes of text only, and a set or dict of
  equal hashes takes quadratic time.
- The values in strings of JSON (`pydantic.Json`) are limited. The limit on the request does not count them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from functools import partial
from sys import hash_info
from typing import Any, Final

from msgspec import Struct, field
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from mcp_roundtrip.protocol.canonical import count_json_values
from mcp_roundtrip.schema.core_schemas import CoreSchema, children, definitions_of, transform
from mcp_roundtrip.schema.union_choices import checked_choices

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_JSON_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

MAX_CHOOSING_US: Final = 500_000
"""Microseconds in which alternatives of unions are chosen for the values of a request."""

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


class _Counts(Struct):
    """What one input has: values by their hashes, values in strings of JSON, time to choose alternatives."""

    by_hash: dict[int, set[int]] = field(default_factory=dict)
    json_values: int = 0
    choosing_us: int = 0


_counts: ContextVar[_Counts | None] = ContextVar("counts", default=None)
"""Those of the client's input that is read; None while a value of the author is read."""


class TooMuchWork(Exception):
    """The alternatives of unions take too long to be chosen."""


def typed_validator(
    schema: CoreSchema, *, patterns: Collection[str] | None = None, config: Any = None
) -> SchemaValidator:
    """Return the validator for a type with its pydantic configuration.

    `patterns` are those that the values' JSON Schema has checked; None if the values have no JSON Schema.
    """
    changed = transform(schema, _Changes(patterns, definitions_of(schema)).change)
    # Otherwise models use the validators that they have, without the changes.
    return SchemaValidator(changed, config, _use_prebuilt=False)


def read_json(validator: SchemaValidator, text: str, *, strict: bool) -> Any:
    """Return the value of the type from JSON text. Raises pydantic's ValidationError, and TooMuchWork."""
    token = _counts.set(_Counts())
    try:
        return validator.validate_json(text, strict=strict, by_alias=True, by_name=False)
    finally:
        _counts.reset(token)


class _Changes(Struct, frozen=True):
    """What is changed in a core schema."""

    patterns: Collection[str] | None
    definitions: Mapping[str, CoreSchema]

    def change(self, schema: dict[str, Any], original: CoreSchema) -> dict[str, Any]:
        match schema.get("type"):
            case "bool":
                return _before(partial(_refuse_equal, _alike((True, False))), schema)
            case "int" | "enum":
                return _before(_whole_number, schema)
            case "literal" if any(isinstance(each, int) for each in schema["expected"]):
                return _before(partial(_refuse_equal, _alike(schema["expected"])), schema)
            case "union":
                schema["choices"] = self._choices(schema, original)
            case "str" if schema.get("pattern") in (self.patterns or ()):
                del schema["pattern"]
            case "json":
                return _before(_limit_json_values, schema)
            case kind if kind in _CONTAINERS:
                schema["fail_fast"] = True
        return _limit_hashes(schema)

    def _choices(self, union: dict[str, Any], original: CoreSchema) -> list[tuple[Any, str]]:
        choices = [each for _, each in children(union)]
        if any(each["type"] == "float" for each in choices):
            choices = list(map(_unchanged_integer, choices))
        if self.patterns is not None:
            choices = checked_choices(original, choices, self.definitions, _limit_choosing)
        names = [each[1] if isinstance(each, tuple) else _label(each) for each in original["choices"]]
        return list(zip(choices, names, strict=True))


def _label(choice: CoreSchema) -> str:
    """Return the name of a choice in the places of errors."""
    while choice["type"].startswith("function-") and "schema" in choice:
        choice = choice["schema"]
    return getattr(choice.get("cls"), "__name__", None) or str(choice["type"])


def _before(check: Any, schema: Any) -> dict[str, Any]:
    ref = schema.pop("ref", None)  # references lead to the outer schema
    return {**core_schema.no_info_before_validator_function(check, schema, ref=ref)}


def _unchanged_integer(choice: CoreSchema) -> CoreSchema:
    """Return a choice beside a float, which takes 2.0 as it is."""
    is_integer = choice["type"] == "function-before" and choice["function"]["function"] is _whole_number
    inner: CoreSchema = choice["schema"] if is_integer else choice
    return inner


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _alike(expected: Collection[Any]) -> frozenset[tuple[bool, Any]]:
    """Return values with whether each is a boolean: True equals 1 in Python."""
    return frozenset((isinstance(each, bool), each) for each in expected)


def _refuse_equal(expected: frozenset[tuple[bool, Any]], value: Any) -> Any:
    """Return a value unless it only equals an expected one of the other kind."""
    # `strict` would do it for booleans, but the argument of a validation takes precedence over it.
    if isinstance(value, (bool, int, float)):
        is_boolean = isinstance(value, bool)
        if (not is_boolean, value) in expected and (is_boolean, value) not in expected:
            raise PydanticCustomError("literal_error", "Input should be another value")
    return _whole_number(value)


def _limit_hashes(schema: dict[str, Any]) -> dict[str, Any]:
    member = _HASHED.get(str(schema.get("type")))
    if member is None:
        return schema
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


def _limit_choosing(microseconds: int) -> None:
    if (counts := _counts.get()) is not None:
        counts.choosing_us += microseconds
        if counts.choosing_us > MAX_CHOOSING_US:
            raise TooMuchWork


def _limit_json_values(value: Any) -> Any:
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
