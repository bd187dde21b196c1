"""The dialect of a JSON Schema, its subschemas, and their patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from mcp_roundtrip.errors import DefinitionError

DEFAULT_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DIALECTS: Final = {
    DEFAULT_DIALECT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
"""Supported values of `$schema` -> the class of jsonschema-rs."""

# basic/index "Composition-Keyword Resource Use" asks for bounds.
MAX_SCHEMA_DEPTH: Final = 64  # jsonschema-rs takes 255 of JSON: an `anyOf` is 2 here, and 6 in `shallow`
MAX_SUBSCHEMAS: Final = 2000

DATA_KEYWORDS: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""

MAP_KEYWORDS: Final = frozenset(
    {
        *("properties", "patternProperties", "$defs", "definitions"),
        *("dependentSchemas", "dependentRequired", "dependencies"),
    }
)
"""Keywords that map names to schemas, or to names."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def dialect_of(schema: Mapping[str, Any]) -> str:
    """Return the `$schema` of a schema, or MCP's default."""
    return str(schema.get("$schema", DEFAULT_DIALECT)).removesuffix("#")


def bounded_subschemas(root: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each object that a `$ref` may use, also under unknown keywords. Raises DefinitionError."""
    waiting: list[tuple[int, Any]] = [(0, root)]
    count = 0
    while waiting:
        depth, node = waiting.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise DefinitionError(
                f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels; use a flatter one"
            )
        if isinstance(node, dict):
            count += 1
            if count > MAX_SUBSCHEMAS:
                raise DefinitionError(
                    f"the schema has more than {MAX_SUBSCHEMAS} subschemas; use a smaller one"
                )
            yield node
        waiting += [(depth + 1, child) for child in _children(node)]


def resolve(root: Mapping[str, Any], reference: Any) -> Any:
    """Return the subschema that a JSON pointer such as `#/$defs/size`, or an anchor, leads to, or None."""
    fragment = str(reference).removeprefix("#")
    if fragment and not fragment.startswith("/"):
        anchors = ("$anchor", "$dynamicAnchor")
        return next((each for each in subschemas(root) if fragment in map(each.get, anchors)), None)
    node: Any = root
    for step in fragment.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        try:
            node = node[int(name)] if isinstance(node, list) else node[name]
        except (KeyError, ValueError, IndexError, TypeError):
            return None
    return node


def escaped(name: str) -> str:
    """Return a name as a step of a JSON pointer in a URI (RFC 6901 §6)."""
    return quote(name.replace("~", "~0").replace("/", "~1"))


def subschemas(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what `bounded_subschemas` yields, of a schema that is within the bounds."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
        waiting += _children(node)


def patterns_of(schema: Mapping[str, Any]) -> set[str]:
    """Return the patterns of a schema itself."""
    names = schema.get("patternProperties")
    found = set(names) if isinstance(names, Mapping) else set()
    return found | {schema["pattern"]} if isinstance(schema.get("pattern"), str) else found


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, list):
        yield from node
    elif isinstance(node, dict):
        for keyword, value in node.items():
            # `properties` maps names to schemas: a name "$ref" is not a reference.
            if keyword in MAP_KEYWORDS and isinstance(value, dict):
                yield from value.values()
            elif keyword not in DATA_KEYWORDS:
                yield value
