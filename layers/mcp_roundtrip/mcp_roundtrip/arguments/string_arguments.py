"""Arguments that arrive as strings: those of prompts, and the variables of URI templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.subschemas import resolve


class StringArguments(Arguments, frozen=True, eq=False):
    """Arguments that are strings: a string that the type refuses is read as JSON."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], context_types: tuple[type, ...]) -> StringArguments:
        """Read a signature. Raises DefinitionError, also for a McpHeader."""
        arguments = super().from_function(function, context_types)
        if arguments.parameter_headers:
            raise DefinitionError(
                f"{arguments.signature.name}: McpHeader is for the parameters of tools; remove it"
            )
        return cls(arguments.signature)

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. Raises ArgumentsError, which quotes no value."""
        given = {name: value for name, value in raw.items() if value is not None}  # null is no string
        wrong = sorted(name for name, value in given.items() if not isinstance(value, str))
        if wrong:
            raise ArgumentsError(
                "\n".join(f"arguments.{name[:128]}: must be a string" for name in wrong[:20])
            )
        if self._json_reader is not None and (values := self._json_reader.read_texts(given)) is not None:
            return values
        if any(parameter.annotation is not str for parameter in self.signature.parameters):
            given = self._types.reader.with_parsed_json(given)
        return super().validate(given)

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the strings that an argument can be, if its type is a Literal or an Enum."""
        schema = self.json_schema()
        member = schema.get("properties", {}).get(name, {})
        choices: list[Any] = []
        for each in member.get("anyOf", [member]):
            option = resolve(schema, each["$ref"]) if "$ref" in each else each
            choices += option.get("enum", [option.get("const")])
        return tuple(choice for choice in choices if isinstance(choice, str))
