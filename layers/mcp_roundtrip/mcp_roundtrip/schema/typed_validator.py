"""pydantic's validator for data that a JSON Schema has accepted: it makes the typed value.

The JSON Schema decides what counts. pydantic would decide some things differently, or take long for them, so
its core schema is changed:

- A boolean equals no number (JSON Schema core, 4.2.2). In a union, pydantic takes one for the other.
- 2.0 and 1e300 are integers.
- A union takes an alternative whose JSON Schema accepts the value (`union_choices`).
- A pattern of the JSON Schema is not matched again: two engines read `\\s` and `\\W` differently.
- The first invalid item ends the validation of a list, so that the number of errors is bounded.
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

from mcp_roundtrip.canonical import count_json_values
from mcp_roundtrip.schema.core_schemas import CoreSchema, definitions_of, transform
from mcp_roundtrip.schema.union_choices import checked_choices

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


class _Counts(Struct):
    """What one input has: values by their hashes, and values in strings of JSON."""

    by_hash: dict[int, set[int]] = field(default_factory=dict)
    json_values: int = 0


_counts: ContextVar[_Counts] = ContextVar("counts")


class TypedValidator(Struct, frozen=True):
    """Makes typed values from JSON text."""

    validator: SchemaValidator

    @classmethod
    def from_core_schema(cls, schema: CoreSchema, patterns: Collection[str] | None) -> TypedValidator:
        """Create the validator for a type.

        `patterns` are those that the JSON Schema has checked; None if it has checked nothing.
        """
        return cls(_build(transform(schema, partial(_change, patterns, definitions_of(schema)))))

    def validate_json(self, text: str, *, strict: bool) -> Any:
        """Return the value of the type. Raises pydantic's ValidationError."""
        token = _counts.set(_Counts())
        try:
            return self.validator.validate_json(text, strict=strict, by_alias=True, by_name=False)
        finally:
            _counts.reset(token)


def _build(changed: Any) -> SchemaValidator:
    try:
        # Otherwise models use the validators that they have, without the changes.
        return SchemaValidator(changed, _use_prebuilt=False)
    except TypeError:  # an older pydantic does not know the argument
        return SchemaValidator(changed)


def _change(
    patterns: Collection[str] | None,
    definitions: Mapping[str, CoreSchema],
    schema: dict[str, Any],
    original: CoreSchema,
) -> dict[str, Any]:
    match schema.get("type"):
        case "bool":
            return _before(partial(_refuse_equal, (True, False)), schema)
        case "int" | "enum":
            return _before(_whole_number, schema)
        case "literal" if any(isinstance(each, int) for each in schema["expected"]):
            return _before(partial(_refuse_equal, tuple(schema["expected"])), schema)
        case "union":
            if any(_choice(each)["type"] == "float" for each in schema["choices"]):
                schema["choices"] = [_unchanged_integer(_choice(each)) for each in schema["choices"]]
            if patterns is not None:
                schema["choices"] = checked_choices(original, schema["choices"], definitions)
        case "str" if patterns and schema.get("pattern") in patterns:
            del schema["pattern"]
        case "json":
            return _before(_limit_json_values, schema)
        case kind if kind in _CONTAINERS:
            schema["fail_fast"] = True
    return _limit_hashes(schema)


def _before(check: Any, schema: Any) -> dict[str, Any]:
    ref = schema.pop("ref", None)  # references lead to the outer schema
    return {**core_schema.no_info_before_validator_function(check, schema, ref=ref)}


def _choice(each: Any) -> dict[str, Any]:
    schema: dict[str, Any] = each[0] if isinstance(each, tuple) else each  # with its label
    return schema


def _unchanged_integer(choice: dict[str, Any]) -> dict[str, Any]:
    """Return a choice beside a float, which takes 2.0 as it is."""
    is_integer = choice["type"] == "function-before" and choice["function"]["function"] is _whole_number
    return choice["schema"] if is_integer else choice


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse_equal(expected: tuple[Any, ...], value: Any) -> Any:
    """Return a value unless it only equals an expected one of the other kind."""
    # `strict` would do it for booleans, but the argument of a validation takes precedence over it.
    equal = [each for each in expected if each == value]
    if equal and all(isinstance(each, bool) is not isinstance(value, bool) for each in equal):
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
    # A small integer is its own hash, so two of them do not collide.
    if isinstance(value, str) or (type(value) is int and abs(value) < hash_info.modulus):
        return value
    try:
        colliding = _counts.get().by_hash.setdefault(hash(value), set())
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
        counts = _counts.get()
        counts.json_values += count_json_values(value, MAX_NESTED_JSON_VALUES)
        if counts.json_values > MAX_NESTED_JSON_VALUES:
            raise PydanticCustomError(
                "too_many_values",
                "More than {limit} values in strings of JSON; send fewer at once",
                {"limit": MAX_NESTED_JSON_VALUES},
            )
    return value
