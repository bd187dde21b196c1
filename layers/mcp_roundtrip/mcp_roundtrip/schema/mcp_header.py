"""Parameters that HTTP headers mirror: `x-mcp-header` (SEP-2243; server/tools "x-mcp-header").

Clients leave a tool out whose declaration breaks a rule, so its author has to hear of it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter, isclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.type_adapters import UNUSABLE, adapter

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Path = tuple[str, ...]
"""The chain of `properties` members that leads from the inputSchema's root to a property."""

ParameterHeaders = Mapping[Path, str]
"""Where the value is in the arguments -> what follows `Mcp-Param-` in the name of its header."""

KEYWORD: Final = "x-mcp-header"
TYPES: Final = ("string", "integer", "boolean")

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2


@dataclass(frozen=True, slots=True)
class McpHeader:
    """`region: Annotated[str, McpHeader("Region")]`: clients send it as the header `Mcp-Param-Region`, too.

    What stands between client and server routes by such headers without reading bodies, and calls whose
    headers disagree with their arguments are refused. Every intermediary sees and may log the value:
    no secrets, no personal data. Raises DefinitionError for a name that is no token (RFC 9110, 5.6.2).
    """

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        if "$ref" in schema:  # an enumeration; clients do not look behind a $ref
            beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
            schema = {**handler.resolve_ref_schema(schema), **beside}
        return {**schema, KEYWORD: self.name}


def in_signature(parameters: Iterable[Parameter]) -> ParameterHeaders:
    """What the parameters' own annotations declare; the JSON Schema of `str`, `int` and `bool` is not built.

    Raises DefinitionError for what clients would refuse, and for a McpHeader that is not the parameter's own.
    """
    found: dict[Path, str] = {}
    for parameter in parameters:
        header = _own_header(parameter)
        if header is not None:
            path = (member_name(parameter),)
            _check_annotation(path, parameter.annotation)
            found[path] = header.name
    _check_unique(found)
    return found


def in_schema(schema: Mapping[str, Any]) -> ParameterHeaders:
    """What an inputSchema declares. Raises DefinitionError for what clients would refuse."""
    from mcp_roundtrip.schema.subschemas import subschemas  # calls of typed tools do not need it

    declarations = sum(KEYWORD in node for node in subschemas(schema))
    properties = dict(_reachable(schema)) if declarations else {}
    if declarations > len(properties):
        raise DefinitionError(
            f"{KEYWORD} stands where clients must not look for it: behind items, a composition, a condition "
            "or a $ref, as the fields of a model do; put it on a parameter of the tool itself"
        )
    for path, declared in properties.items():
        _check_name(declared[KEYWORD])
        _check_type(path, declared)
    found = {path: declared[KEYWORD] for path, declared in properties.items()}
    _check_unique(found)
    return found


def _own_header(parameter: Parameter) -> McpHeader | None:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    own = [item for item in metadata if isinstance(item, McpHeader)]
    everywhere = [*_everywhere(parameter.annotation), *filter(_declares, [parameter.default])]
    if len(everywhere) > 1 or len(own) < len(everywhere):
        raise DefinitionError(
            f"parameter {parameter.name!r} has several McpHeaders, or one in an alias, a model or "
            "json_schema_extra; write one around the whole type, as in `Annotated[str, McpHeader('Region')]`"
        )
    return own[0] if own else None


def _everywhere(annotation: Any) -> Sequence[Any]:
    try:
        return _known(annotation)
    except TypeError:  # metadata may have no hash, as in Annotated[int, {...}]
        return tuple(_declarations(annotation, {}))


@lru_cache(maxsize=512)  # a server's tools share their types
def _known(annotation: Any) -> Sequence[Any]:
    return tuple(_declarations(annotation, {}))


def _declarations(part: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """All that declares a header, however deep it is in a type. `seen` keeps what its ids are of."""
    if id(part) in seen:
        return
    if _declares(part):  # the same McpHeader twice is two declarations
        yield part
        return
    seen[id(part)] = part
    for inner in (get_origin(part), *get_args(part), *_behind(part)):
        yield from _declarations(inner, seen)


def _declares(part: Any) -> bool:
    if isinstance(part, McpHeader):
        return True
    config = getattr(part, "model_config", None)
    extra = config.get("json_schema_extra") if isinstance(config, dict) else None
    written = (extra, getattr(part, "json_schema_extra", None), getattr(part, "json_schema", None))
    return any(map(_has_keyword, written))


def _has_keyword(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    from mcp_roundtrip.schema.subschemas import subschemas  # few annotations bring JSON Schema

    return any(KEYWORD in node for node in subschemas(schema))


def _behind(part: Any) -> Iterable[Any]:
    """The types that a name stands for, or that the members of a class have; none where they cannot be read.

    A name that does not exist is for pydantic to refuse: it may exist by the time of the first call.
    """
    if type(part).__module__ in ("typing", "typing_extensions"):  # an alias (`type X = ...`), a NewType
        name = "__value__" if type(part).__name__ == "TypeAliasType" else "__supertype__"
        with suppress(NameError, AttributeError):
            return (getattr(part, name),)
    if not isclass(part):
        return ()
    if fields := getattr(part, "__pydantic_fields__", None):
        members = chain.from_iterable((each, each.annotation, *each.metadata) for each in fields.values())
        is_complete = getattr(part, "__pydantic_complete__", False)
        return members if is_complete else (*members, *_hints(part))
    if fields := getattr(part, "__dataclass_fields__", None):
        return (*_hints(part), *(each.default for each in fields.values()))
    return _hints(part) if hasattr(part, "__total__") or hasattr(part, "_fields") else ()


def _hints(cls: type[Any]) -> Iterable[Any]:
    try:
        return get_type_hints(cls, include_extras=True).values()
    except Exception:  # evaluating an annotation may raise anything
        return ()


def member_name(parameter: Parameter) -> str:
    """What the argument is called in JSON: the parameter's alias, or its name. Raises DefinitionError."""
    member = parameter.name
    for item in (*getattr(parameter.annotation, "__metadata__", ()), parameter.default):
        member = getattr(item, "validation_alias", None) or member
    if not isinstance(member, str):  # the value could come under a name that nobody looks for
        raise DefinitionError(
            f"parameter {parameter.name!r} has several aliases; write one, as in "
            "`Field(validation_alias='name')`"
        )
    return member


def _check_annotation(path: Path, annotation: Any) -> None:
    if get_args(annotation)[0] in (str, int, bool):
        return
    from mcp_roundtrip.schema.json_schema import json_schema  # slow to import, and few parameters come here

    try:
        _check_type(path, json_schema(adapter(annotation)))
    except UNUSABLE as error:
        from mcp_roundtrip.schema.type_errors import reason  # as above

        raise DefinitionError(f"parameter {'.'.join(path)!r}: {reason(annotation, error)}") from None


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and _TOKEN.fullmatch(name)):
        raise DefinitionError(
            f"{KEYWORD} {name!r:.200} is not a header name; use letters, digits and !#$%&'*+-.^_`|~"
        )


def _check_type(path: Path, schema: Mapping[str, Any]) -> None:
    if schema.get("type") not in TYPES:
        raise DefinitionError(
            f"parameter {'.'.join(path)!r} has {KEYWORD} and is not a string, an integer or a boolean; "
            "use str, int or bool, and a default of that type instead of None"
        )


def _check_unique(found: ParameterHeaders) -> None:
    seen: dict[str, Path] = {}
    for path, name in found.items():
        other = seen.setdefault(name.lower(), path)
        if other != path:
            raise DefinitionError(
                f"parameters {'.'.join(other)!r} and {'.'.join(path)!r} have the same {KEYWORD} {name!r}, "
                "case aside; give one of them another name"
            )


def _reachable(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The annotated properties with nothing but `properties` on the way from the root."""
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        if isinstance(member, dict):
            if KEYWORD in member:
                yield (*path, name), member
            yield from _reachable(member, (*path, name))
