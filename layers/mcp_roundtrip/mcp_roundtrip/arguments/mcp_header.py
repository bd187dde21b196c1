"""Parameters that clients repeat as HTTP headers: `x-mcp-header` (SEP-2243; server/tools "x-mcp-header").

Clients drop a tool whose declarations break a rule of the specification. Registration reads only the
parameters' own `McpHeader`s. All other rules are checked when the tool's JSON Schema is built, for the
catalog, in tests and for lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

PropertyPath = tuple[str, ...]
"""The names under `properties` that lead from the root of an inputSchema to a property."""

ParameterHeaders = Mapping[PropertyPath, str]
"""Path of an argument -> name of its header after `Mcp-Param-`."""

KEYWORD: Final = "x-mcp-header"

_HEADER_NAME: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # a token (RFC 9110 §5.6.2)


class McpHeader(Struct, frozen=True):
    """Ask clients to send a parameter also as an HTTP header.

    `region: Annotated[str, McpHeader("Region")]` is sent as `Mcp-Param-Region`, too, by which intermediaries
    can route without reading the body. A call is refused if its header is missing or differs from the
    argument. Some clients never send it, or only after they listed the tools. Every intermediary may log the
    value, so pass no secrets and no personal data.

    Raises DefinitionError for a name that is not a token (RFC 9110 §5.6.2).
    """

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        siblings = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        # Clients do not follow a $ref, which an enumeration has.
        return {**handler.resolve_ref_schema(schema), **siblings, KEYWORD: self.name}


def headers_of_parameters(parameters: Iterable[Parameter]) -> ParameterHeaders:
    """Return the headers of the parameters' own annotations. Raises DefinitionError."""
    found: dict[PropertyPath, str] = {}
    for parameter in parameters:
        if (header := _own_header(parameter)) is not None:
            found[(argument_name(parameter),)] = header.name
    _check_unique(found)
    return found


def headers_of_schema(schema: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> ParameterHeaders:
    """Return the headers of an inputSchema with these subschemas. Raises DefinitionError."""
    declarations = sum(KEYWORD in node for node in nodes)
    properties = dict(_declaring_properties(schema))
    if declarations > len(properties):
        raise DefinitionError(
            f"{KEYWORD} is behind items, a composition, a condition or a $ref, such as the field of a model, "
            "where clients do not read it; put McpHeader around the whole type of a parameter of the tool"
        )
    for path, declared in properties.items():
        _check_name(declared[KEYWORD])
        _check_type(path, declared)
    found = {path: declared[KEYWORD] for path, declared in properties.items()}
    _check_unique(found)
    return found


def argument_name(parameter: Parameter) -> str:
    """Return the name in JSON: the parameter's alias, or its name. Raises DefinitionError."""
    name = parameter.name
    for item in (*getattr(parameter.annotation, "__metadata__", ()), parameter.default):
        name = getattr(item, "validation_alias", None) or name
    if not isinstance(name, str):  # a call could pass the value under a name that is not checked
        raise DefinitionError(
            f"parameter {parameter.name!r}: an alias is one name here, not several or a path; "
            "write Field(alias=...)"
        )
    return name


def _own_header(parameter: Parameter) -> McpHeader | None:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    found = [item for item in metadata if isinstance(item, McpHeader)]
    if len(found) > 1 or isinstance(parameter.default, McpHeader):
        raise DefinitionError(
            f"parameter {parameter.name!r} has several McpHeaders, or one as its default; write one in its "
            "annotation, as in `Annotated[str, McpHeader('Region')]`"
        )
    return found[0] if found else None


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and re.fullmatch(_HEADER_NAME, name)):
        raise DefinitionError(
            f"{KEYWORD} {name!r:.200} is not a header name; use letters, digits and !#$%&'*+-.^_`|~"
        )


def _check_type(path: PropertyPath, schema: Mapping[str, Any]) -> None:
    if schema.get("type") not in ("string", "integer", "boolean"):
        raise DefinitionError(
            f"parameter {'.'.join(path)!r} has {KEYWORD} and is not a string, an integer or a boolean; "
            "use str, int or bool, and a default of that type instead of None"
        )


def _check_unique(found: ParameterHeaders) -> None:
    seen: dict[str, PropertyPath] = {}
    for path, name in found.items():
        other = seen.setdefault(name.lower(), path)
        if other != path:
            raise DefinitionError(
                f"parameters {'.'.join(other)!r} and {'.'.join(path)!r} have the same {KEYWORD} {name!r} "
                "(in any case); give one of them another name"
            )


def _declaring_properties(
    schema: Mapping[str, Any], path: PropertyPath = ()
) -> Iterator[tuple[PropertyPath, Mapping[str, Any]]]:
    """Yield the properties with a header that only `properties` lead to."""
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        if isinstance(member, dict):
            if KEYWORD in member:
                yield (*path, name), member
            yield from _declaring_properties(member, (*path, name))
