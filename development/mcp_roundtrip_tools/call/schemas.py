"""Schemas of a server that may be nonsensical: only what can be used of them is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_DEPTH: Final = 20
"""Schemas inside deeper ones allow everything."""

TYPES: Final = frozenset({"string", "boolean", "integer", "number", "object", "array", "null"})


def usable_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema without the keywords whose values have another type than JSON Schema says.

    The server checks every value again, so a field that is no longer described accepts any JSON or text.
    """
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {}
    found = {name: value for name, value in schema.items() if _CHECKS.get(name, _anything)(value)}
    if "type" in found:
        found["type"] = [each for each in _names(found["type"]) if each in TYPES]
    if found.get("type") == ["boolean"] and not isinstance(found.get("default"), bool):
        found.pop("default", None)
    for name in found.keys() & {"properties", "$defs"}:
        found[name] = {key: usable_schema(value, depth + 1) for key, value in found[name].items()}
    for name in found.keys() & {"oneOf", "anyOf"}:
        found[name] = [usable_schema(value, depth + 1) for value in found[name]]
    if "items" in found:
        found["items"] = usable_schema(found["items"], depth + 1)
    return found


def _names(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _anything(value: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is(str, list),
    **dict.fromkeys(("properties", "$defs", "items"), _is(dict)),
    **dict.fromkeys(("oneOf", "anyOf", "enum", "enumNames", "required"), _is(list)),
    **dict.fromkeys(("title", "description", "format", "$ref"), _is(str)),
    **dict.fromkeys(("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"), _is_number),
}
