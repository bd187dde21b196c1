"""Bounds on the time that a JSON Schema takes for every value: its cost times the size of the value.

The cost of a schema is the number of checks that it makes of one value. A check of 25 ns is the unit, so the
bound is one second. Composition multiplies: if both alternatives of an `anyOf` lead to one `$ref`, the target
is checked twice, and on the next level four times. jsonschema-rs remembers results only for a reference to a
schema around it, and only for arrays and objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.subschemas import nodes, resolve

MAX_COST: Final = 2000
"""Checks of one value, for which 20,000 values take a second."""

MAX_WORK: Final = 40_000_000
"""Cost of a schema times the size of a value."""

TOO_MUCH_WORK: Final = "Input has too many long numbers and texts to be checked; send fewer or shorter ones"

_MAX_DEPTH: Final = 200
_MAX_NAMES: Final = 100
"""Names of members whose costs are added one by one."""

_RECURSION: Final = 20
"""The cost of a schema that refers to itself: each array and object is remembered, in 50 bytes."""

_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_EACH: Final = (
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    *_UNEVALUATED,
)
"""Keywords whose subschema applies to members of any name, or to items at any position."""

_AGAIN: Final = 3
"""Times that `_UNEVALUATED` has the schemas beside it checked."""

_LIMITS: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), 10),
    "multipleOf": 40,
}
"""Keywords with a number -> their weight."""

_UNIQUE: Final = 20
_FORMAT: Final = 50
_SLOW_FORMATS: Final = {"idn-hostname": 400}

_SELF: Final = -1
_ANY: Final = -2
"""Keys of costs, beside the names of members and the positions of items: the value, and each part of it."""

_Costs = Counter[str | int]


def schema_cost(root: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], int] | None = None) -> int:
    """Return how many checks of one value a schema makes at most.

    `weigh` returns the cost of a schema without its subschemas, for other values than common ones.
    """
    costs = _Analysis(root, weigh or _weight)
    cost = costs.greatest(root, 0)
    return cost + sum(costs.greatest(node, 0) for node in [*costs.recursive.values()])


def check_cost(root: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a schema that makes too many checks of one value."""
    if schema_cost(root) > MAX_COST:
        raise DefinitionError(
            f"the schema makes more than {MAX_COST} checks of one value; use fewer alternatives, and fewer "
            "numbers, arrays and objects in an enum"
        )


def value_size(value: Any) -> tuple[int, int]:
    """Return the number of values in JSON data, and what long texts and uncommon numbers add to it."""
    size, uncommon, waiting = 0, 0, [value]
    while waiting:
        each = waiting.pop()
        size += 1
        if isinstance(each, dict):
            waiting += each.values()
            uncommon += sum(map(len, each)) // 200
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, str):
            uncommon += len(each) // 200
        elif isinstance(each, float):
            uncommon += _float_size(each)
        elif isinstance(each, int) and each.bit_length() > 63:
            uncommon += 16 + each.bit_length() ** 2 // 50_000
    return size, uncommon


def _float_size(value: float) -> int:
    # The validator computes with the digits.
    if abs(value) >= 1e16:
        return 30
    if value.is_integer():
        return 2
    return 10 if abs(value) > 1e-5 else 100


class _Analysis:
    def __init__(self, root: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], int]) -> None:
        self.root = root
        self.weigh = weigh
        self.known: dict[int, _Costs] = {}
        self.open: set[int] = set()
        self.recursive: dict[int, Any] = {}
        self.anchors = {
            f"#{node[keyword]}": node
            for node in nodes(root)
            for keyword in ("$anchor", "$dynamicAnchor")
            if keyword in node
        }

    def greatest(self, schema: Any, depth: int) -> int:
        """Return the cost of a schema for the value, or for the part of the value that costs the most."""
        costs = self._costs(schema, depth + 1)
        return max(costs[_SELF], _part_cost(costs))

    def _costs(self, schema: Any, depth: int) -> _Costs:
        key = id(schema)
        if not isinstance(schema, dict):
            return Counter({_SELF: 1})
        if depth > _MAX_DEPTH:
            return Counter({_SELF: MAX_COST + 1})
        if key in self.open:
            self.recursive[key] = schema
            return Counter({_SELF: _RECURSION})
        if key not in self.known:
            self.open.add(key)
            self.known[key] = self._sum(schema, depth)
            self.open.remove(key)
        return self.known[key]

    def _sum(self, schema: Mapping[str, Any], depth: int) -> _Costs:
        found: _Costs = Counter({_SELF: self.weigh(schema)})
        for each in self._in_place(schema):
            found.update(self._costs(each, depth + 1))  # adds
        if _UNEVALUATED & schema.keys():
            found = Counter({key: _AGAIN * cost for key, cost in found.items()})
        for key, each in _parts(schema):
            found[key] += self.greatest(each, depth)
        found[_ANY] += 2 * len(_mapping(schema, "patternProperties"))
        if len(found) > _MAX_NAMES:
            return Counter({_SELF: found[_SELF], _ANY: _part_cost(found)})
        return found

    def _in_place(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the subschemas that apply to the value itself."""
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                reference = schema[keyword]
                yield self.anchors.get(reference) or resolve(self.root, reference)
        for keyword in ("allOf", "anyOf", "oneOf"):
            yield from _list(schema, keyword)
        for keyword in ("not", "if", "then", "else"):
            if keyword in schema:
                yield schema[keyword]
        for keyword in ("dependentSchemas", "dependencies"):
            yield from (each for each in _mapping(schema, keyword).values() if not isinstance(each, list))


def _part_cost(costs: _Costs) -> int:
    named = max((cost for key, cost in costs.items() if key not in (_SELF, _ANY)), default=0)
    return costs[_ANY] + named


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str | int, Any]]:
    yield from _mapping(schema, "properties").items()
    for keyword in ("prefixItems", "items"):
        yield from enumerate(_list(schema, keyword))
    for each in _mapping(schema, "patternProperties").values():
        yield _ANY, each
    for keyword in _EACH:
        if keyword in schema:
            yield _ANY, schema[keyword]


def _mapping(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    operand = schema.get(keyword)
    return operand if isinstance(operand, Mapping) else {}  # its dialect is checked later


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    operand = schema.get(keyword)
    return operand if isinstance(operand, list) else []


def _weight(schema: Mapping[str, Any], looked_up: tuple[type, ...] = (int, str)) -> int:
    """Return the cost of a schema without its subschemas for common values."""
    weight = 1 + len(_list(schema, "required"))
    for keyword in ("dependentRequired", "dependencies"):
        names = _mapping(schema, keyword).values()
        weight += sum(1 + len(each) for each in names if isinstance(each, list))
    weight += sum(each * _number(schema[keyword]) for keyword, each in _LIMITS.items() if keyword in schema)
    weight += _UNIQUE if schema.get("uniqueItems") else 0
    weight += _SLOW_FORMATS.get(str(schema.get("format")), _FORMAT) if "format" in schema else 0
    options = [*_list(schema, "enum"), *([schema["const"]] if "const" in schema else ())]
    if any(all(type(each) is kind for each in options) for kind in looked_up):
        return weight
    return weight + sum(map(_comparison, options))


def uncommon_weight(schema: Mapping[str, Any]) -> int:
    """Return the cost of a schema without its subschemas for each that `value_size` adds."""
    return _weight(schema, looked_up=(str,))


def _comparison(option: Any) -> int:
    """Return the weight of an option that a value is compared with."""
    if isinstance(option, (dict, list)):
        parts = option.values() if isinstance(option, dict) else option
        return 10 + max(map(_comparison, parts), default=0)
    return 1 if isinstance(option, str) or option is None else 5 * _number(option)


def _number(operand: Any) -> int:
    return max(1, value_size(operand)[1] // 10)
