"""Reads JSON that a JSON Schema decides about; after it, the author's validators do, which pydantic runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from msgspec import Struct
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaValidator as PydanticValidator

from mcp_roundtrip.internal_errors import InvalidValue
from mcp_roundtrip.schema.core_schemas import CoreSchema, nodes
from mcp_roundtrip.schema.json_schema import JsonSchemaGenerator
from mcp_roundtrip.schema.schema_validator import SchemaValidator
from mcp_roundtrip.schema.typed_validator import read_typed, typed_validator


class CheckedReader(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The counterpart of `ExactReader`, whose fields have the same meaning, for all types and inputs."""

    core_schema: CoreSchema
    validator: SchemaValidator
    root: str
    nullable: frozenset[str]

    @classmethod
    def compile(
        cls, core_schema: CoreSchema, json_schema: Mapping[str, Any], root: str, nullable: frozenset[str]
    ) -> Self:
        return cls(core_schema, SchemaValidator.compile(json_schema, "inputSchema"), root, nullable)

    def read(self, raw: Mapping[str, Any], text: str) -> Any:
        """Return the value of `raw`, whose JSON text is `text`. Raises InvalidValue."""
        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        if problems := self.validator.problems(value, self.root, len(text), self._own_patterns):
            raise InvalidValue("\n".join(problems))
        return read_typed(self._typed_validator, text, self.root)

    @cached_property
    def _own_patterns(self) -> frozenset[str]:
        """The patterns of the type. The JSON Schema has others, such as that of a Decimal."""
        return frozenset(node["pattern"] for node in nodes(self.core_schema) if "pattern" in node)

    @cached_property
    def _typed_validator(self) -> PydanticValidator:
        return typed_validator(self.core_schema, self.validator.patterns, _compiled)


def _compiled(schema: CoreSchema) -> SchemaValidator | None:
    """Return the validator of a choice of a union; None if the JSON Schema of the union is the author's."""
    made: Any = schema
    try:
        return SchemaValidator.compile(JsonSchemaGenerator().generate(made))
    except PydanticUserError:
        return None
