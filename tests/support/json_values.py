"""Values that conform to a JSON Schema, near misses, and an oracle that distinguishes them.

`hypothesis-jsonschema` supports neither `prefixItems` nor recursive references, which pydantic writes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import reduce
from operator import getitem
from typing import Any

import jsonschema
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

FORMATTED = {
    "date": ["2026-07-28", "2024-02-29"],
    "time": ["10:00:00Z", "23:59:59+02:00"],
    "date-time": ["2026-07-28T10:00:00Z", "2026-07-28T10:00:00.5+02:00"],
    "duration": ["P1D", "PT5M", "P1DT2H"],
    "uuid": ["12345678-1234-4678-9234-567812345678"],
    "uuid4": ["12345678-1234-4678-9234-567812345678"],
    "uri": ["https://example.com/", "urn:a:b"],
    "ipv4": ["192.0.2.1"],
    "ipv4network": ["192.0.2.0/24"],
    "ipv6": ["2001:db8::1"],
    "regex": ["^a+$"],
    "base64": ["e30=", ""],
    "zoneinfo": ["Europe/Oslo"],
}
"""The generated strings of each format. All other strings count as violations of the format."""

_SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 2, 0.5, 1.0, 2.0, 1e300, "", "1", "4_0", "true", "yes", "a", "é", "x y"]
)
_NAMES = st.sampled_from(["a", "b", "x", "1", "2", "01", "kind", "value", "extra"])
_TEXTS = st.text()
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=3,
)


def any_json(
    text: st.SearchStrategy[str] = _TEXTS,
    *,
    finite: bool = False,
    max_leaves: int = 8,
) -> st.SearchStrategy[Any]:
    """Generate any value of JSON; `finite`: without NaN and infinity, which json.dumps writes too."""
    floats = st.floats(allow_nan=not finite, allow_infinity=not finite)
    return st.recursive(
        st.none() | st.booleans() | st.integers() | floats | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=max_leaves,
    )


def values_of_type(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values of a type and, less often, others."""
    other = any_json()
    kind = getattr(annotation, "__origin__", annotation)
    if kind is list and hasattr(annotation, "__args__"):
        return st.lists(values_of_type(annotation.__args__[0]), max_size=3) | other
    if kind is dict and hasattr(annotation, "__args__"):
        return (
            st.dictionaries(st.text(max_size=3), values_of_type(annotation.__args__[1]), max_size=3) | other
        )
    exact = {
        str: st.text(max_size=5),
        int: st.integers() | st.integers(-5, 5).map(float),
        float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        bool: st.booleans(),
    }
    return exact.get(kind, other) | st.just("") | st.none() | other


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in JSON data, beginning with the whole."""
    yield path
    if isinstance(value, (dict, list)):
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, *path, name)


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """Return JSON data with another value at a place."""
    if not path:
        return by
    copied = value.copy()
    copied[path[0]] = replaced(value[path[0]], path[1:], by)
    return copied


def values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Generate values that conform to `schema`, and some near misses."""

    @st.composite
    def value(draw: Draw) -> Any:
        made = _conforming(draw, schema, schema, 4)
        for _ in range(draw(st.sampled_from([0, 0, 1, 1, 1, 2]))):
            made = _mutated(draw, made)
        return made

    return value()


def _conforming(draw: Draw, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        return _conforming(draw, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, depth - 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        leaves = [branch for branch in branches if branch.get("type") not in ("array", "object", None)]
        branch = draw(st.sampled_from(leaves if leaves and depth < 0 else branches))
        return _conforming(draw, branch, root, depth)
    kind = schema.get("type")
    return _MAKERS[kind](draw, schema, root, depth) if kind in _MAKERS else draw(_ANY)


def _string(draw: Draw, schema: Any, root: Any, depth: int) -> str:
    if schema.get("format") in FORMATTED:
        return str(draw(st.sampled_from(FORMATTED[schema["format"]])))
    if "pattern" in schema:
        return str(draw(st.from_regex(_python(schema["pattern"]))))
    letters = st.sampled_from(["a", "b", "1", "é", "\U0001f600", " ", "\n"])
    least = schema.get("minLength", 0)
    return str(draw(st.text(letters, min_size=least, max_size=schema.get("maxLength", least + 4))))


def _number(draw: Draw, schema: Any, root: Any, depth: int) -> float:
    whole = schema["type"] == "integer"
    step = schema.get("multipleOf", 1 if whole else 0.25)
    least = schema.get("minimum", schema.get("exclusiveMinimum", -20))
    most = schema.get("maximum", schema.get("exclusiveMaximum", max(least, 0) + 20))
    low, high = (int(Decimal(str(limit)) / Decimal(str(step))) for limit in (least, most))
    number = Decimal(draw(st.integers(low, max(low, high)))) * Decimal(str(step))
    is_float = draw(st.integers(0, 3)) == 0 or number != number.to_integral_value()
    return float(number) if is_float else int(number)


def _array(draw: Draw, schema: Any, root: Any, depth: int) -> list[Any]:
    first = schema.get("prefixItems", [])
    least = schema.get("minItems", 0)
    count = draw(st.integers(least, schema.get("maxItems", max(least, 0 if depth < 0 else 3))))
    items = [_conforming(draw, member, root, depth - 1) for member in first[:count]]
    items += [_conforming(draw, schema.get("items", {}), root, depth - 1) for _ in range(count - len(items))]
    if schema.get("uniqueItems"):
        items = list({json.dumps(item, sort_keys=True): item for item in items}.values())
    return items


def _object(draw: Draw, schema: Any, root: Any, depth: int) -> dict[str, Any]:
    members = schema.get("properties", {})
    required = schema.get("required", [])
    chosen = [name for name in members if name in required or (depth > 0 and draw(st.booleans()))]
    made = {name: _conforming(draw, members[name], root, depth - 1) for name in chosen}
    for pattern, member in schema.get("patternProperties", {}).items():
        made[str(draw(st.from_regex(_python(pattern))))] = _conforming(draw, member, root, depth - 1)
    others = schema.get("additionalProperties", {})
    if others is not False and others is not True:
        for _ in range(draw(st.integers(schema.get("minProperties", 0), 2))):
            name = draw(_NAMES) if "propertyNames" not in schema else _named(draw, schema, root)
            made.setdefault(name, _conforming(draw, others, root, depth - 1))
    return made


def _named(draw: Draw, schema: Any, root: Any) -> str:
    return str(_conforming(draw, {"type": "string", **schema["propertyNames"]}, root, 0))


_MAKERS: dict[str, Callable[[Draw, Any, Any, int], Any]] = {
    "null": lambda draw, schema, root, depth: None,
    "boolean": lambda draw, schema, root, depth: draw(st.booleans()),
    "integer": _number,
    "number": _number,
    "string": _string,
    "array": _array,
    "object": _object,
}


# Near misses


def _mutated(draw: Draw, value: Any) -> Any:
    """Return `value` with one of its parts changed."""
    path = draw(st.sampled_from(list(places(value))))
    changes = map(st.just, _changes(reduce(getitem, path, value)))
    return replaced(value, path, draw(draw(st.sampled_from([*changes, _SCALARS]))))


def _changes(part: Any) -> Iterator[Any]:
    yield None
    if isinstance(part, bool):
        yield from (int(part), str(part).lower(), not part)
    elif isinstance(part, (int, float)):
        yield from (str(part), bool(part), float(part), part + 1, -part, part + 0.5)
    elif isinstance(part, str):
        yield from (part + part, part.upper(), f" {part}", part[:-1], [part])
        if re.fullmatch(r"-?[0-9]{1,9}", part):
            yield int(part)
    elif isinstance(part, list):
        yield from ([*part, *part[:1]], [*part, 1], {}, dict(zip("xyz", part, strict=False)))
        yield from (part[:at] + part[at + 1 :] for at in range(len(part)))
    elif isinstance(part, dict):
        yield from ({**part, "extra": 1}, {**part, "a": True}, list(part.values()), [], [part])
        yield from ({name: part[name] for name in part if name != left_out} for left_out in part)


# The oracle


def verdicts(schema: Mapping[str, Any]) -> Callable[[Any], set[bool]]:
    """Return the possible verdicts of jsonschema: both if only a format decides.

    `multipleOf` applies to the decimal number as written, and `$` follows ECMA-262.
    """
    annotated, asserted = _Validator(schema), _Validator(schema, format_checker=_FORMATS)
    return lambda value: {annotated.is_valid(value), asserted.is_valid(value)}


def _python(pattern: str) -> str:
    return re.sub(r"\$$", r"\\Z", pattern)


def _pattern(validator: Any, pattern: str, text: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(text, str) and not re.search(_python(pattern), text):
        yield jsonschema.ValidationError("pattern")


def _multiple(validator: Any, step: Any, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        quotient = Decimal(str(value)) / Decimal(str(step))
        if quotient != quotient.to_integral_value():
            yield jsonschema.ValidationError("multipleOf")


_FORMATS = jsonschema.FormatChecker(formats=())
for _name, _texts in FORMATTED.items():
    _FORMATS.checks(_name)(lambda value, known=_texts: not isinstance(value, str) or value in known)

_extend: Any = jsonschema.validators.extend  # has no annotations
_Validator: Any = _extend(jsonschema.Draft202012Validator, {"pattern": _pattern, "multipleOf": _multiple})
