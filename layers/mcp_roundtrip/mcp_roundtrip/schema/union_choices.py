"""Unions: a value is read as an alternative whose JSON Schema accepts it.

pydantic reads more than the JSON Schema accepts: a `datetime` without a time zone, a `timedelta` from
"1 day", a set with repeated items. In `datetime | str` it would take the first for a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic.errors import PydanticUserError
from pydantic_core import core_schema

from mcp_roundtrip.schema.core_schemas import CoreSchema, children, reachable_definitions
from mcp_roundtrip.schema.problem_texts import ACCEPTED_CHOICE, REFUSED_CHOICE
from mcp_roundtrip.schema.validation_cost import value_size

if TYPE_CHECKING:
    from mcp_roundtrip.schema.schema_validator import SchemaValidator

_KINDS: Final = {
    **dict.fromkeys(("int", "float", "bool", "none"), "number"),
    **dict.fromkeys(("list", "set", "frozenset", "tuple"), "array"),
    **dict.fromkeys(("model", "typed-dict", "dataclass", "dict"), "object"),
    **dict.fromkeys(
        ("str", "bytes", "date", "datetime", "time", "timedelta", "uuid", "url", "decimal"), "string"
    ),
}
"""Types of core schemas -> what they read. Others may read anything."""

_EXACT: Final = frozenset({"int", "float", "bool", "none", "literal", "any"})
"""Types that read only what the JSON Schema accepts, with the changes of `typed_validator`."""


def checked_choices(
    union: CoreSchema,
    changed: list[CoreSchema],
    definitions: Mapping[str, CoreSchema],
    spend: Callable[[int], None],
) -> list[CoreSchema]:
    """Return the choices of a union, each for those values only that its JSON Schema accepts.

    `changed` are the validators of the union's choices. A choice stays as it is if no other reads its values.
    `spend` is called with the microseconds of each check.
    """
    choices = [choice for _, choice in children(union)]
    kinds = [_kind(each, definitions) for each in choices]
    whole = _JsonSchema({"type": "union", "choices": choices}, definitions)
    checked = []
    for number, choice in enumerate(choices):
        validator = changed[number]
        others = {kind for other, kind in enumerate(kinds) if other != number}
        is_ambiguous = not kinds[number] or not others.isdisjoint({kinds[number], ""})
        if is_ambiguous and choice["type"] not in _EXACT:
            validator = _checked(validator, _JsonSchema(choice, definitions), whole, spend)
        checked.append(validator)
    return checked


def _kind(choice: CoreSchema, definitions: Mapping[str, CoreSchema]) -> str:
    if choice["type"] == "definition-ref":
        choice = definitions[choice["schema_ref"]]
    return _KINDS.get(choice["type"], "")


def _checked(
    changed: Any, choice: _JsonSchema, union: _JsonSchema, spend: Callable[[int], None]
) -> CoreSchema:
    def discriminator(value: Any) -> str | None:
        spend(2 * value_size(value)[0] + union.choices // 20)
        # No choice accepts what a validator around the union has converted: pydantic decides.
        return ACCEPTED_CHOICE if choice.accepts(value) or not union.accepts(value) else None

    # A discriminator leaves the input as it is. A validator before the choice would turn JSON into Python's
    # values, of which strict mode reads no dates.
    return {
        **core_schema.tagged_union_schema(
            {ACCEPTED_CHOICE: changed},
            discriminator,
            custom_error_type=REFUSED_CHOICE,
            custom_error_message="Input should fit another alternative",
        )
    }


class _JsonSchema:
    """The JSON Schema of a choice, which is built for the first value."""

    def __init__(self, schema: CoreSchema, definitions: Mapping[str, CoreSchema]) -> None:
        self._schema = schema
        self.choices = len(schema.get("choices", ()))
        self._definitions = definitions

    def accepts(self, value: Any) -> bool:
        """Return whether JSON data is valid; also for a value that is not JSON, or without a JSON Schema."""
        try:
            return self._validator is None or self._validator.is_valid(value)
        except (TypeError, ValueError):  # an author's validator around the union has made it
            return True

    @cached_property
    def _validator(self) -> SchemaValidator | None:
        from mcp_roundtrip.schema.json_schema import JsonSchemaGenerator
        from mcp_roundtrip.schema.schema_validator import SchemaValidator

        try:
            return SchemaValidator.compile(JsonSchemaGenerator().generate(self._with_definitions()))
        except PydanticUserError:  # the JSON Schema of the union is the author's
            return None

    def _with_definitions(self) -> Any:
        used = reachable_definitions(self._schema, self._definitions)
        definitions: Any = [self._definitions[each] for each in used]
        schema: Any = self._schema
        return core_schema.definitions_schema(schema, definitions) if definitions else schema
