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
- What one input makes pydantic do is limited (`input_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from typing import Any, Final, Protocol

from msgspec import Struct
from pydantic_core import PydanticCustomError, SchemaValidator, ValidationError, core_schema

from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.schema.error_texts import ACCEPTED_CHOICE, REFUSED_CHOICE, describe_errors
from mcp_roundtrip.schema.input_limits import (
    TooMuchWork,
    limit_choosing,
    limit_hashes,
    limit_json_values,
    limited,
)
from mcp_roundtrip.schema.patterns import TEXT_TOO_LONG, exceeds_matching
from mcp_roundtrip.schema.pydantic_core_schemas import (
    JSON_KINDS,
    CoreSchema,
    children,
    definitions_of,
    nodes,
    transform,
    with_definitions,
)
from mcp_roundtrip.schema.validation_cost import value_size

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


class JsonValidator(Protocol):
    """Decides whether JSON data is valid."""

    def is_valid(self, value: Any, /) -> bool: ...


CompileChoice = Callable[[CoreSchema], JsonValidator | None]
"""Compiles the JSON Schema of an alternative."""

Accepts = Callable[[Any], bool]


def typed_validator(
    schema: CoreSchema,
    patterns: Collection[str] = (),
    compile_choice: CompileChoice | None = None,
    *,
    config: Any = None,
) -> SchemaValidator:
    """Return the validator for a type with its pydantic configuration.

    `patterns` are those that the values' JSON Schema has checked. Without `compile_choice`, pydantic alone
    chooses the alternatives of unions: the values have no JSON Schema.
    """
    changed = transform(schema, _Changes(patterns, compile_choice, definitions_of(schema)).change)
    # Otherwise models use the validators that they have, without the changes.
    return SchemaValidator(changed, config, _use_prebuilt=False)


def read_typed(validator: SchemaValidator, text: str, root: str) -> Any:
    """Return the value of the type from JSON text with the name `root`. Raises InvalidValue.

    Strict mode comes first, so that a union takes the alternative that needs no conversion. Lax mode reads a
    date from the str that a BeforeValidator returns. It is of no use if only the author's validators refuse a
    value.
    """
    try:
        try:
            with limited():
                return validator.validate_json(text, strict=True, by_alias=True, by_name=False)
        except ValidationError as error:
            if {each["type"] for each in error.errors()} <= {"value_error", "assertion_error"}:
                raise
        with limited():
            return validator.validate_json(text, strict=False, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidValue(
            describe_errors(error, root), partial(describe_errors, error, root, for_log=True)
        ) from None
    except TooMuchWork:
        problem = "Input has too many values for its alternatives; send fewer"
        raise InvalidValue(f"{format_location(root, ())}: {problem}") from None


class StringReader(Struct, frozen=True, eq=False):
    """Reads objects whose members are strings, which may stand for numbers: they have no JSON Schema."""

    validator: SchemaValidator
    patterns: frozenset[str]
    root: str

    @classmethod
    def from_schema(cls, schema: CoreSchema, root: str) -> StringReader:
        patterns = frozenset(node["pattern"] for node in nodes(schema) if "pattern" in node)
        return cls(typed_validator(schema), patterns, root)

    def read(self, raw: Mapping[str, str], text: str) -> Any:
        """Return the value of `raw`, whose JSON text is `text`. Raises InvalidValue."""
        if self.patterns and exceeds_matching(self.patterns, 0, raw, len(text)):
            raise InvalidValue(f"{format_location(self.root, ())}: {TEXT_TOO_LONG}")
        return read_typed(self.validator, text, self.root)


class _Changes(Struct, frozen=True):
    patterns: Collection[str]
    compile_choice: CompileChoice | None
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
            case "str" if schema.get("pattern") in self.patterns:
                del schema["pattern"]
            case "json":
                return _before(limit_json_values, schema)
        if kind in _FAIL_FAST:
            schema["fail_fast"] = True
        if kind in _HASHED:
            return self._refuse_one_key_twice(limit_hashes(schema, _HASHED[kind]), original)
        return schema

    def _choices(self, union: dict[str, Any], original: CoreSchema) -> list[tuple[Any, str]]:
        choices = [each for _, each in children(union)]
        if any(each["type"] == "float" for each in choices):
            choices = list(map(_unchanged_integer, choices))
        if self.compile_choice is not None:
            choices = self._checked_choices(original, choices, self.compile_choice)
        names = [each[1] if isinstance(each, tuple) else _label(each) for each in original["choices"]]
        return list(zip(choices, names, strict=True))

    def _checked_choices(
        self, union: CoreSchema, changed: list[CoreSchema], compile_choice: CompileChoice
    ) -> list[CoreSchema]:
        """Return the changed choices of a union, each for those values only that its JSON Schema accepts.

        A choice stays as it is if no other reads its values.
        """
        choices = [choice for _, choice in children(union)]
        kinds = [self._json_kind(each) for each in choices]
        whole = self._schema_of({"type": "union", "choices": choices}, compile_choice)
        checked = []
        for number, choice in enumerate(choices):
            others = {kind for other, kind in enumerate(kinds) if other != number}
            is_ambiguous = not kinds[number] or not others.isdisjoint({kinds[number], ""})
            if is_ambiguous and choice["type"] not in _EXACT:
                of_choice = self._schema_of(choice, compile_choice)
                changed[number] = _refuse_unless(
                    partial(_is_chosen, of_choice, whole, len(choices)),
                    changed[number],
                    (REFUSED_CHOICE, "Input should fit another alternative"),
                )
            checked.append(changed[number])
        return checked

    def _schema_of(self, schema: CoreSchema, compile_choice: CompileChoice) -> Accepts:
        """Return the check by the JSON Schema of a choice, which the first value compiles."""
        compiled = cache(lambda: compile_choice(with_definitions(schema, self.definitions)))

        def accepts(value: Any) -> bool:
            validator = compiled()
            try:
                return validator is None or validator.is_valid(value)
            except (TypeError, ValueError):  # not JSON: an author's validator around the union has made it
                return True

        return accepts

    def _json_kind(self, choice: CoreSchema) -> str:
        """Return the kind of JSON that a choice reads, or "" for any."""
        if choice["type"] == "definition-ref":
            choice = self.definitions[choice["schema_ref"]]
        return JSON_KINDS.get(choice["type"], "")

    def _refuse_one_key_twice(self, schema: dict[str, Any], original: CoreSchema) -> dict[str, Any]:
        keys = original.get("keys_schema")
        if keys is None or (keys["type"] in _ONE_SPELLING and keys.keys().isdisjoint(_CONVERSIONS)):
            return schema
        names: Any = core_schema.dict_schema(with_definitions(schema["keys_schema"], self.definitions))
        problem = "Input has names that are one key, such as 1 and 1.0; write each key once"
        return _refuse_unless(
            partial(_has_each_key_once, SchemaValidator(names)), schema, ("one_key", problem)
        )


def _refuse_unless(accepts: Accepts, schema: Any, error: tuple[str, str]) -> dict[str, Any]:
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


def _is_chosen(choice: Accepts, union: Accepts, choices: int, value: Any) -> bool:
    limit_choosing(2 * value_size(value)[0] + choices // 20)
    # No choice accepts what a validator around the union has converted: pydantic decides.
    return choice(value) or not union(value)


def _has_each_key_once(names: SchemaValidator, value: Any) -> bool:
    try:
        return len(names.validate_python(dict.fromkeys(value))) == len(value)
    except (TypeError, ValueError):  # no object, or a name that is no key: the dict says so
        return True


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
