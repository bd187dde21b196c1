"""pydantic's validator for data that a JSON Schema has accepted: it makes the typed value.

The JSON Schema decides what counts. pydantic would decide some things differently, or take long for them, so
its core schema is changed:

- A boolean equals no number (JSON Schema core, 4.2.2). In a union, pydantic takes one for the other.
- 2.0 and 1e300 are integers.
- A union takes an alternative whose JSON Schema accepts the value. pydantic reads more: a `datetime` without
  a time zone, a `timedelta` from "1 day", a set with repeated items. In `datetime | str` it would take the
  first for a text.
- Two names of an object that are one key, such as "1" and "1.0" of a `dict[float, ...]`, are refused.
- A pattern of the JSON Schema is not matched again: two engines read `\\s` and `\\W` differently.
- The first invalid item ends the validation of a list, so that the number of errors is bounded.
- The alternatives that are compared with values are limited.
- Different values with one hash are limited. Python randomizes the hashes of text only, and a set or dict of
  equal hashes takes quadratic time.
- The values in strings of JSON (`pydantic.Json`) are limited. The limit on the request does not count them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from functools import cached_property, partial
from sys import hash_info
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from mcp_roundtrip.protocol.canonical import count_json_values
from mcp_roundtrip.schema.core_schemas import (
    JSON_KINDS,
    CoreSchema,
    children,
    definitions_of,
    transform,
    with_definitions,
)
from mcp_roundtrip.schema.problem_texts import ACCEPTED_CHOICE, REFUSED_CHOICE
from mcp_roundtrip.schema.validation_cost import value_size

if TYPE_CHECKING:
    from mcp_roundtrip.schema.schema_validator import SchemaValidator as JsonSchemaValidator

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_JSON_VALUES: Final = 20_000
"""JSON values within the strings of a request, as many as its body may have by default."""

MAX_CHOOSING_US: Final = 500_000
"""Microseconds in which alternatives of unions are chosen for the values of a request."""

_FAIL_FAST: Final = frozenset({"list", "set", "frozenset", "tuple", "dict"})

_HASHED: Final = {
    **dict.fromkeys(("set", "frozenset"), "items_schema"),
    **dict.fromkeys(("dict", "ordered-dict", "counter"), "keys_schema"),
}
"""Types of core schemas that hash values -> the member that describes those values."""

_ONE_SPELLING: Final = frozenset({"str", "int", "bool", "literal", "enum", "any"})
"""Types of keys of which each has one name in JSON."""

_CONVERSIONS: Final = ("strip_whitespace", "to_lower", "to_upper")

_EXACT: Final = frozenset({"int", "float", "bool", "none", "literal", "any"})
"""Types that read only what the JSON Schema accepts, with the changes made here."""

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
        kind = schema.get("type")
        match kind:
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
        if kind in _FAIL_FAST:
            schema["fail_fast"] = True
        if kind in _HASHED:
            return self._refuse_one_key_twice(_limit_hashes(schema, _HASHED[kind]), original)
        return schema

    def _choices(self, union: dict[str, Any], original: CoreSchema) -> list[tuple[Any, str]]:
        choices = [each for _, each in children(union)]
        if any(each["type"] == "float" for each in choices):
            choices = list(map(_unchanged_integer, choices))
        if self.patterns is not None:
            choices = self._checked_choices(original, choices)
        names = [each[1] if isinstance(each, tuple) else _label(each) for each in original["choices"]]
        return list(zip(choices, names, strict=True))

    def _checked_choices(self, union: CoreSchema, changed: list[CoreSchema]) -> list[CoreSchema]:
        """Return the changed choices of a union, each for those values only that its JSON Schema accepts.

        A choice stays as it is if no other reads its values.
        """
        choices = [choice for _, choice in children(union)]
        kinds = [self._json_kind(each) for each in choices]
        whole = _JsonSchema({"type": "union", "choices": choices}, self.definitions)
        checked = []
        for number, choice in enumerate(choices):
            others = {kind for other, kind in enumerate(kinds) if other != number}
            is_ambiguous = not kinds[number] or not others.isdisjoint({kinds[number], ""})
            if is_ambiguous and choice["type"] not in _EXACT:
                of_choice = _JsonSchema(choice, self.definitions)
                changed[number] = _refuse_unless(
                    partial(_is_chosen, of_choice, whole),
                    changed[number],
                    (REFUSED_CHOICE, "Input should fit another alternative"),
                )
            checked.append(changed[number])
        return checked

    def _json_kind(self, choice: CoreSchema) -> str:
        """Return the kind of JSON that a choice reads, or "" for any."""
        if choice["type"] == "definition-ref":
            choice = self.definitions[choice["schema_ref"]]
        return JSON_KINDS.get(choice["type"], "")

    def _refuse_one_key_twice(self, schema: dict[str, Any], original: CoreSchema) -> dict[str, Any]:
        keys = original.get("keys_schema")
        if keys is None or (keys["type"] in _ONE_SPELLING and keys.keys().isdisjoint(_CONVERSIONS)):
            return schema
        names: Any = core_schema.dict_schema(with_definitions(keys, self.definitions))
        problem = "Input has names that are one key, such as 1 and 1.0; write each key once"
        return _refuse_unless(
            partial(_has_each_key_once, SchemaValidator(names)), schema, ("one_key", problem)
        )


def _refuse_unless(accepts: Callable[[Any], bool], schema: Any, error: tuple[str, str]) -> dict[str, Any]:
    """Return a schema that reads what `accepts` returns True for. `error` is its type and its text."""
    # A discriminator leaves the input as it is. A validator before the choice would turn JSON into Python's
    # values, of which strict mode reads no dates.
    ref = schema.pop("ref", None)  # references lead to the outer schema
    return {
        **core_schema.tagged_union_schema(
            {ACCEPTED_CHOICE: schema},
            lambda value: ACCEPTED_CHOICE if accepts(value) else None,
            custom_error_type=error[0],
            custom_error_message=error[1],
            ref=ref,
        )
    }


def _is_chosen(choice: _JsonSchema, union: _JsonSchema, value: Any) -> bool:
    _limit_choosing(2 * value_size(value)[0] + union.choices // 20)
    # No choice accepts what a validator around the union has converted: pydantic decides.
    return choice.accepts(value) or not union.accepts(value)


def _has_each_key_once(names: SchemaValidator, value: Any) -> bool:
    try:
        return len(names.validate_python(dict.fromkeys(value))) == len(value)
    except (TypeError, ValueError):  # no object, or a name that is no key: the dict says so
        return True


class _JsonSchema:
    """The JSON Schema of a choice, which is built for the first value."""

    def __init__(self, schema: CoreSchema, definitions: Mapping[str, CoreSchema]) -> None:
        self._schema = schema
        self._definitions = definitions
        self.choices = len(schema.get("choices", ()))

    def accepts(self, value: Any) -> bool:
        """Return whether JSON data is valid; also for a value that is not JSON, or without a JSON Schema."""
        try:
            return self._validator is None or self._validator.is_valid(value)
        except (TypeError, ValueError):  # an author's validator around the union has made it
            return True

    @cached_property
    def _validator(self) -> JsonSchemaValidator | None:
        # Prompts and most results need neither.
        from mcp_roundtrip.schema.json_schema import JsonSchemaGenerator
        from mcp_roundtrip.schema.schema_validator import SchemaValidator

        schema = with_definitions(self._schema, self._definitions)
        try:
            return SchemaValidator.compile(JsonSchemaGenerator().generate(schema))
        except PydanticUserError:  # the JSON Schema of the union is the author's
            return None


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


def _limit_hashes(schema: dict[str, Any], member: str) -> dict[str, Any]:
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
