"""pydantic's JSON Schema without generated titles, and complete where pydantic's own says too little.

Imported when a schema is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
"""How a string says a number."""


_KEYS: Final[Mapping[str, JsonSchemaValue]] = {
    "int": {"pattern": "^(0|-?[1-9][0-9]*)$"},
    "float": {"pattern": NUMBER},
    "decimal": {"pattern": NUMBER},
    "bool": {"enum": ["true", "false"]},
}
"""What the names of an object's members have to be, by the type of a dict's keys."""


class Untitled(GenerateJsonSchema):
    """Keeps a title only where the author set one: `Name` above `name` costs the model tokens."""

    # A default that JSON cannot hold is left out of the schema; the function still has it.
    ignored_warning_kinds = GenerateJsonSchema.ignored_warning_kinds | {"non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _untitled(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        made = super().decimal_schema(schema)
        for branch in made.get("anyOf", ()):  # there is one if it describes what is validated
            if branch.get("type") == "string":
                branch["pattern"] = NUMBER
        return made

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        if self.mode == "validation":
            if names := _KEYS.get(schema.get("keys_schema", {}).get("type", "any")):
                made.setdefault("propertyNames", names)
            if "patternProperties" in made:  # other names would be allowed
                made.setdefault("additionalProperties", False)
        return made

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        made = super().tagged_union_schema(schema)
        tag = made.get("discriminator", {}).get("propertyName")
        if tag and self.mode == "validation":  # needed to choose one, also where a model has a default for it
            made["required"] = [tag]
        return made

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        self._enums.add(schema["cls"].__name__)
        return super().enum_schema(schema)

    def generate(
        self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation"
    ) -> JsonSchemaValue:
        self._enums: set[str] = set()
        made = super().generate(schema, mode)
        # pydantic adds an enumeration's title after enum_schema() has returned.
        # It is a property's own where McpHeader put the enumeration in place of its $ref.
        for found in (made, *made.get("$defs", {}).values(), *made.get("properties", {}).values()):
            if found.get("title") in self._enums and ("enum" in found or "const" in found):
                del found["title"]
        return made


def json_schema(
    adapter: TypeAdapter[Any],
    mode: JsonSchemaMode = "validation",
    generator: type[GenerateJsonSchema] = Untitled,
) -> dict[str, Any]:
    """JSON Schema 2020-12 of the adapter's type, members named by alias, `type` first."""
    schema = adapter.json_schema(by_alias=True, mode=mode, schema_generator=generator)
    return {"type": schema.pop("type"), **schema} if "type" in schema else schema


def _untitled(schema: JsonSchemaValue, cls: Any) -> JsonSchemaValue:
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    if "title" not in config and schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
