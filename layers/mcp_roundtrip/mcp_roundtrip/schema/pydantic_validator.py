"""pydantic's validator for data that a JSON Schema has accepted: it makes the typed value.

The JSON Schema decides what counts. pydantic would decide some things differently, or take long for them, so
its core schema is changed:

- A union takes an alternative whose JSON Schema accepts the value. pydantic takes true for 1, and 1.0 for
  true, and reads more: a `datetime` without a time zone, a `timedelta` from "1 day", a set with repeated
  items. In `datetime | str` it would take the first for a text.
- 1e300 is an integer.
- Two names of an object that are one key, such as "1" and "1.0" of a `dict[float, ...]`, are refused.
- A pattern of the JSON Schema is not matched again: two engines read `\\s` and `\\W` differently.
- The first invalid item ends the validation of a list, so that the number of errors is bounded.
- What one input makes pydantic do is limited (`input_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from typing import Any, Final, Literal

from msgspec import Struct
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticCustomError, SchemaValidator, ValidationError, core_schema

from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.schema.bounds import value_size
from mcp_roundtrip.schema.error_texts import ACCEPTED_CHOICE, REFUSED_CHOICE, describe_errors
from mcp_roundtrip.schema.input_limits import limit_choosing, limit_collisions, limit_json_values, limited
from mcp_roundtrip.schema.pydantic_core_schemas import (
    JSON_KINDS,
    CoreSchema,
    children,
    definitions_of,
    transform,
    with_definitions,
)

_FAIL_FAST: Final = frozenset({"list", "set", "frozenset", "tuple", "dict"})

_HASHED: Final = {
    **dict.fromkeys(("set", "frozenset"), "items_schema"),
    **dict.fromkeys(("dict", "ordered-dict", "counter"), "keys_schema"),
}
"""Types of core schemas that hash values -> the member that describes those values."""

_ONE_SPELLING: Final = frozenset({"str", "int", "bool", "literal", "enum", "any"})
"""Types of keys of which each has one name in JSON."""

_CONVERSIONS: Final = ("strip_whitespace", "to_lower", "to_upper")

_SCALARS: Final = frozenset({"bool", "int", "float", "literal", "enum"})
"""Types whose values Python finds equal to others: True to 1."""

Checked = Literal["none", "scalars", "all"]
"""The alternatives of unions that are checked by their JSON Schema."""

Accepts = Callable[[Any], bool]


def typed_validator(
    schema: CoreSchema, checked: Checked, patterns: Collection[str] = (), *, config: Any = None
) -> SchemaValidator:
    """Return the validator for a type with its pydantic configuration.

    `patterns` are those that the values' JSON Schema has checked.
    """
    changed = transform(schema, _Changes(checked, patterns, definitions_of(schema)).change)
    # Otherwise models use the validators that they have, without the changes.
    return SchemaValidator(changed, config, _use_prebuilt=False)


def read_typed(validator: SchemaValidator, text: str, root: str) -> Any:
    """Return the value of the type from JSON text with the name `root`. Raises InvalidValue."""
    try:
        with limited():
            return validator.validate_json(text, strict=False, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid_value(error, root) from None
    except PydanticCustomError as error:
        raise InvalidValue(f"{format_location(root, ())}: {error}") from None


def invalid_value(error: ValidationError, root: str) -> InvalidValue:
    """Return pydantic's errors about a value with the name `root`."""
    return InvalidValue(describe_errors(error, root), partial(describe_errors, error, root, for_log=True))


class _Changes(Struct, frozen=True):
    checked: Checked
    patterns: Collection[str]
    definitions: Mapping[str, CoreSchema]

    def change(self, schema: dict[str, Any], original: CoreSchema) -> dict[str, Any]:
        kind = schema.get("type")
        match kind:
            case "int":
                return _before(_whole_number, schema)
            case "literal" if self.checked != "none":
                return self._booleans_apart(schema)
            case "union" if self.checked != "none":
                schema["choices"] = self._checked_choices(schema, original)
            case "str" if schema.get("pattern") in self.patterns:
                del schema["pattern"]
            case "json":
                return _before(limit_json_values, schema)
        if kind in _FAIL_FAST:
            schema["fail_fast"] = True
        if kind in _HASHED:
            hashed = schema.get(_HASHED[kind]) or core_schema.any_schema()
            schema[_HASHED[kind]] = core_schema.no_info_after_validator_function(limit_collisions, hashed)
            return self._refuse_one_key_twice(schema, original)
        return schema

    def _booleans_apart(self, literal: dict[str, Any]) -> dict[str, Any]:
        """Return a literal of both, such as `Literal[1, True]`, as a union: 1.0 equals 1 and True."""
        booleans = [each for each in literal["expected"] if isinstance(each, bool)]
        others = [each for each in literal["expected"] if not isinstance(each, bool)]
        if not booleans or not any(isinstance(each, int) for each in others):
            return literal
        parts: list[CoreSchema] = [{**literal, "expected": each} for each in (booleans, others)]
        union = {**literal, "type": "union", "choices": parts}
        del union["expected"]
        return self.change({**union}, union)

    def _checked_choices(self, changed: Mapping[str, Any], union: CoreSchema) -> list[tuple[Any, str]]:
        """Return the changed choices of a union, each for those values only that its JSON Schema accepts.

        A choice stays as it is if no other reads its values.
        """
        choices = [choice for _, choice in children(union)]
        labels = [each[1] if isinstance(each, tuple) else _label(each) for each in union["choices"]]
        kinds = [self._json_kind(each) for each in choices]
        whole = self._accepts({"type": "union", "choices": choices})
        found = [choice for _, choice in children(changed)]
        for number, choice in enumerate(choices):
            others = {kind for other, kind in enumerate(kinds) if other != number}
            is_ambiguous = not kinds[number] or not others.isdisjoint({kinds[number], ""})
            if is_ambiguous and (self.checked == "all" or choice["type"] in _SCALARS):
                found[number] = _refuse_unless(
                    partial(_is_chosen, self._accepts(choice), whole, len(choices)),
                    found[number],
                    (REFUSED_CHOICE, "Input should fit another alternative"),
                )
        return list(zip(found, labels, strict=True))

    def _accepts(self, schema: Any) -> Accepts:
        """Return the check by the JSON Schema of a type, which the first value compiles."""
        compiled = cache(lambda: _json_schema_validator(with_definitions(schema, self.definitions)))

        def accepts(value: Any) -> bool:
            validator = compiled()
            try:
                return validator is None or bool(validator.is_valid(value))
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


def _json_schema_validator(schema: Any) -> Any:
    """Return the validator by the JSON Schema of a type; None if that is the author's."""
    from mcp_roundtrip.schema.json_schema import JsonSchemaGenerator
    from mcp_roundtrip.schema.json_schema_validator import SchemaValidator  # few types have such unions

    try:
        return SchemaValidator.compile(JsonSchemaGenerator().generate(schema))
    except PydanticUserError:
        return None


def _refuse_unless(accepts: Accepts, schema: Any, error: tuple[str, str]) -> dict[str, Any]:
    """Return a schema that reads what `accepts` returns True for. `error` is its type and its text."""
    # A discriminator leaves the input as it is. A validator before the choice would turn JSON into Python's
    # values, of which pydantic reads other dates.
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
    limit_choosing(2 * value_size(value) + choices // 20)
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


def _whole_number(value: Any) -> Any:
    """Return a number beyond 63 bits as an integer; pydantic converts the others."""
    is_large = isinstance(value, float) and abs(value) >= 2**63
    return int(value) if is_large and value.is_integer() else value
