"""Arguments of a typed function: inputSchema from its signature, keyword arguments from JSON.

Those of prompts, and the variables of URI templates, arrive as strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_roundtrip.arguments.mcp_header import ParameterHeaders, argument_name, headers_of_parameters
from mcp_roundtrip.arguments.plain_json_types import JsonReader
from mcp_roundtrip.arguments.signature import Signature
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidValue, format_location, named_errors

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.pydantic_types import ArgumentTypes
    from mcp_roundtrip.schema.input_validation import SchemaReader

CLIENT_ARGUMENTS: Final = frozenset({"toolCallId", "sessionId"})
"""Arguments that clients such as n8n add to each call."""


class Arguments(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The JSON Schema and the validation of a function's arguments.

    Registration only reads the signature; readers are built at the first call or list.
    `is_lenient`: JSON as text is read where the schema refuses text, and unknown arguments are dropped.
    """

    signature: Signature
    is_lenient: bool = False
    parameter_headers: ParameterHeaders = field(default_factory=dict)

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Arguments:
        """Read the signature of `function`. Raises DefinitionError."""
        signature = Signature.from_function(function).require_annotations()
        with named_errors(signature.name):
            return cls(signature, parameter_headers=headers_of_parameters(signature.parameters))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments in JSON, in order. Raises DefinitionError."""
        with named_errors(self.signature.name):
            return tuple(map(argument_name, self.signature.parameters))

    def json_schema(self) -> dict[str, Any]:
        """Return the `inputSchema`, which is built once. Do not change it. Raises DefinitionError."""
        return self._types.json_schema

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments. Raises ArgumentsError: one line per problem, without values."""
        if self._json_reader is not None and (values := self._json_reader.read(raw)) is not None:
            return values
        return self._read(self._types.reader, raw)

    def _read(self, reader: SchemaReader, raw: Mapping[str, Any]) -> dict[str, Any]:
        try:
            values: dict[str, Any] = reader.read(raw, is_lenient=self.is_lenient)
        except InvalidValue as error:
            raise ArgumentsError(str(error)) from None
        return values

    @property
    def drops_unknown(self) -> bool:
        """Whether arguments that the schema does not have are dropped."""
        return self.is_lenient

    def known(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out arguments that clients add, and unknown ones that are dropped."""
        added = raw.keys() if self.drops_unknown else raw.keys() & CLIENT_ARGUMENTS
        unknown = added - set(self.names) if added else ()
        return {name: value for name, value in raw.items() if name not in unknown} if unknown else raw

    @cached_property
    def _json_reader(self) -> JsonReader | None:
        return JsonReader.from_signature(self.signature)

    @cached_property
    def _types(self) -> ArgumentTypes:
        from mcp_roundtrip.arguments.pydantic_types import ArgumentTypes  # imports pydantic

        return ArgumentTypes(self.signature, self.names, self.parameter_headers)


class StringArguments(Arguments, frozen=True, eq=False):
    """Arguments that are strings. A string that the type refuses is read as JSON."""

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> StringArguments:
        """Read a signature. Raises DefinitionError, also for a McpHeader."""
        arguments = super().from_function(function)
        if arguments.parameter_headers:
            raise DefinitionError(
                f"{arguments.signature.name}: McpHeader is for the parameters of tools; remove it"
            )
        return cls(arguments.signature)

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments. Raises ArgumentsError, which quotes no value."""
        given = {name: value for name, value in raw.items() if value is not None}  # null is no string
        wrong = sorted(name for name, value in given.items() if not isinstance(value, str))
        if wrong:
            raise ArgumentsError(
                "\n".join(f"{format_location('arguments', [name])}: must be a string" for name in wrong[:20])
            )
        if self._json_reader is not None and (values := self._json_reader.read_texts(given)) is not None:
            return values
        if any(parameter.annotation is not str for parameter in self.signature.parameters):
            given = self._types.reader.with_parsed_json(given)
        return super().validate(given)

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the strings of an argument's Literal or Enum; none for another type."""
        schema = self.json_schema()
        member = schema.get("properties", {}).get(name, {})
        choices: list[Any] = []
        for each in member.get("anyOf", [member]):
            option = schema["$defs"][each["$ref"].removeprefix("#/$defs/")] if "$ref" in each else each
            choices += option.get("enum", [option.get("const")])
        return tuple(choice for choice in choices if isinstance(choice, str))
