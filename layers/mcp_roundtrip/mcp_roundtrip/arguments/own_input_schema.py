"""Arguments of a tool with its own JSON Schema (`input_schema=`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from mcp_roundtrip.arguments.mcp_header import headers_of_schema
from mcp_roundtrip.arguments.signature import Signature
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import named_errors
from mcp_roundtrip.protocol.strict_json import is_portable_json
from mcp_roundtrip.schema.input_validation import SchemaReader
from mcp_roundtrip.schema.pattern_checks import check_for_clients
from mcp_roundtrip.schema.subschemas import DIALECTS, REFERENCES, bounded_subschemas, dialect_of, subschemas
from mcp_roundtrip.schema.validation_cost import check_cost

INPUT_SCHEMA: Final = "input_schema"
"""The option of a tool, in messages."""


class OwnSchemaArguments(Arguments, frozen=True, eq=False, kw_only=True):
    """The arguments of a function that takes all of them as one dict."""

    input_schema: dict[str, Any]

    @classmethod
    def from_schema(cls, function: Callable[..., Any], input_schema: Mapping[str, Any]) -> OwnSchemaArguments:
        """Check `input_schema` without compiling it, and find the parameter. Raises DefinitionError."""
        signature = Signature.from_function(function)
        if len(signature.parameters) != 1:
            raise DefinitionError(
                f"{signature.name}: with input_schema= the function takes one parameter besides the context, "
                f"not {len(signature.parameters)}; write `arguments: dict[str, Any]` in their place"
            )
        if not isinstance(input_schema, Mapping):
            raise DefinitionError(
                f"{signature.name}: input_schema is a JSON Schema; write a dict, or leave it out for the "
                "parameters' own types"
            )
        schema = dict(input_schema)
        with named_errors(signature.name):
            _check(schema)
            parameter_headers = headers_of_schema(schema, subschemas(schema))
        return cls(signature, input_schema=schema, parameter_headers=parameter_headers)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under `properties`."""
        return tuple(_mapping(self.input_schema.get("properties")))

    def json_schema(self) -> dict[str, Any]:
        """Return the schema as the author wrote it."""
        return self.input_schema

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return `{parameter: raw}`. Raises ArgumentsError, and DefinitionError for an invalid schema."""
        with named_errors(self.signature.name):
            return {self.signature.parameters[0].name: self._read(self._reader, raw)}

    @property
    def drops_unknown(self) -> bool:
        """Whether unknown arguments are dropped: only if the schema refuses them."""
        is_closed = self.input_schema.get("additionalProperties") is False
        return self.is_lenient and is_closed and "patternProperties" not in self.input_schema

    @cached_property
    def _reader(self) -> SchemaReader:
        properties = _mapping(self.input_schema.get("properties"))
        optional = frozenset(name for name, each in properties.items() if "default" in _mapping(each))
        return SchemaReader(self.json_schema, "arguments", optional, schema_name=INPUT_SCHEMA)


def _check(schema: dict[str, Any]) -> None:
    if schema.get("type") != "object":
        raise DefinitionError('input_schema is not that of an object; write "type": "object" at its root')
    if dialect_of(schema) not in DIALECTS:
        raise DefinitionError(
            f"$schema {schema['$schema']!r} of input_schema is not supported; use one of "
            f"{', '.join(DIALECTS)}"
        )
    for node in bounded_subschemas(schema):
        for keyword in REFERENCES:
            # basic/index "$ref Resolution": network URIs are never dereferenced.
            if keyword in node and not str(node[keyword]).startswith("#"):
                raise DefinitionError(
                    f"{keyword} {node[keyword]!r} of input_schema leaves the document; write '#/$defs/...'"
                )
    for name, member in _mapping(schema.get("properties")).items():
        if isinstance(member, bool):  # 2025-11-25 has objects only: a TypeScript client loses every tool
            raise DefinitionError(
                f"property {name!r} of input_schema is {member}; write {'{}' if member else {'not': {}}}"
            )
    if not is_portable_json(schema):
        raise DefinitionError("input_schema is not JSON; write text, numbers below 1.8e308, lists and dicts")
    with named_errors(INPUT_SCHEMA):
        check_for_clients(schema)
    check_cost(schema)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
