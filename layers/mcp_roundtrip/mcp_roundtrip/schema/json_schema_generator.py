"""JSON Schemas by pydantic, without generated titles, and with constraints that pydantic leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.strict_json import is_portable_json
from mcp_roundtrip.schema.core_schema_traversal import option_json
from mcp_roundtrip.schema.pattern_checks import check_for_clients
from mcp_roundtrip.schema.subschemas import subschemas
from mcp_roundtrip.schema.validation_cost import check_cost

NUMBER_PATTERN: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"

_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_HOUR: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME: Final = rf"{_HOUR}(:[0-5][0-9](\.[0-9]{{1,6}})?)?"

_KEY_SCHEMAS: Final[Mapping[str, JsonSchemaValue]] = {
    "int": {"pattern": "^(0|-?[1-9][0-9]*)$"},
    "float": {"pattern": NUMBER_PATTERN},
    "decimal": {"pattern": NUMBER_PATTERN},
    "bool": {"enum": ["true", "false"]},
}
"""Type of a dict's keys -> schema of the names in the JSON object."""


class JsonSchemaGenerator(GenerateJsonSchema):
    """Keeps only titles that the author wrote: a title `Name` for `name` costs the model tokens."""

    # A default that JSON cannot hold is left out of the schema, without a warning.
    ignored_warning_kinds = GenerateJsonSchema.ignored_warning_kinds | {"non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _untitled(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        if self.mode == "validation":  # pydantic refuses fields with init=False
            fields = [each for each in schema["fields"] if each.get("init", True)]
            schema = {**schema, "fields": fields}
        return super().dataclass_args_schema(schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        made = super().float_schema(schema)
        # Without `multipleOf: 0.1` of results: official clients divide floats, and refuse 0.3.
        if self.mode == "serialization" and not float(made.get("multipleOf", 1)).is_integer():
            del made["multipleOf"]
        return made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        made = super().decimal_schema(schema)
        for branch in made.get("anyOf", ()):  # only in validation mode
            if branch.get("type") == "string":
                branch["pattern"] = NUMBER_PATTERN
        return made

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        return self._with_names(super().dict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_names(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        return self._with_names(super().counter_schema(schema), schema)

    def _with_names(self, made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """Describe the names of an object that are the keys of a dict."""
        if self.mode == "validation":
            if names := _KEY_SCHEMAS.get(schema.get("keys_schema", {}).get("type", "any")):
                made.setdefault("propertyNames", names)
            if "patternProperties" in made:  # pydantic refuses other names
                made.setdefault("additionalProperties", False)
        elif self.resolve_ref_schema(made.get("propertyNames", {})).get("type") in ("integer", "number"):
            del made["propertyNames"]  # of an enumeration of numbers, which are written as text
        return made

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        made = super().datetime_schema(schema)
        if self.mode == "validation" and schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": f"^{_DATE}[Tt ]{_TIME}$"}
        return self._of_every_value(made, schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        if self.mode == "validation" and schema.get("tz_constraint") != "aware":
            # The format would demand a time zone.
            return {"type": "string", "pattern": f"^{_TIME}(Z|[+-]{_HOUR})?$"}
        return self._of_every_value(super().time_schema(schema), schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return self._of_every_value(super().timedelta_schema(schema), schema)

    def _of_every_value(self, made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """Leave out a format that not every result has: a time zone, whole seconds."""
        if self.mode == "serialization" and schema.get("tz_constraint") != "aware":
            made.pop("format", None)
        return made

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        made = super().tagged_union_schema(schema)
        tag = made.get("discriminator", {}).get("propertyName")
        if tag and self.mode == "validation":  # pydantic requires it even if a model has a default for it
            made["required"] = [tag]
        return made

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        self._enums.add(schema["cls"].__name__)
        return _without_repetition(super().enum_schema(schema))

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _without_repetition(super().literal_schema(schema))

    def generate(
        self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation"
    ) -> JsonSchemaValue:
        self._enums: set[str] = set()
        made = super().generate(schema, mode)
        # pydantic adds an enumeration's title after enum_schema() has returned. Properties are included
        # because McpHeader replaces the $ref to an enumeration by the enumeration.
        for found in (made, *made.get("$defs", {}).values(), *made.get("properties", {}).values()):
            if found.get("title") in self._enums and ("enum" in found or "const" in found):
                del found["title"]
        return made


def build_json_schema(
    types: TypeAdapter[Any],
    mode: JsonSchemaMode = "validation",
    generator: type[GenerateJsonSchema] = JsonSchemaGenerator,
) -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of a type, with `type` first. Raises DefinitionError."""
    schema = types.json_schema(by_alias=True, mode=mode, schema_generator=generator)
    check_for_clients(schema)
    _remove_infinite_annotations(schema)
    if mode == "validation":
        check_cost(schema)
    else:
        for part in subschemas(schema):
            if part.get("format") == "email":  # EmailStr decodes a domain such as xn--fiqs8s.co
                del part["format"]
    return {"type": schema.pop("type"), **schema} if "type" in schema else schema


def _remove_infinite_annotations(schema: JsonSchemaValue) -> None:
    for part in subschemas(schema):
        for keyword in part.keys() & {"default", "examples"}:
            if not is_portable_json(part[keyword]):
                del part[keyword]
    if not is_portable_json(schema):
        raise DefinitionError("the schema has NaN, Infinity or a larger number; write numbers below 1.8e308")


def _without_repetition(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Leave out an option that occurs twice, as an alias of a member: draft-07 demands unique ones."""
    if "enum" in schema:
        schema["enum"] = [*{option_json(each): each for each in schema["enum"]}.values()]
    return schema


def _untitled(schema: JsonSchemaValue, cls: Any) -> JsonSchemaValue:
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    if "title" not in config and schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
