"""Bounds on the time that a JSON Schema takes for a value.

A schema has a cost, the number of checks that it makes of one value, and a value has a size. Their product is
the work, in units of 25 ns. Composition multiplies: if both alternatives of an `anyOf` lead to one `$ref`,
the target is checked twice, and on the next level four times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import starmap
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.subschemas import DATA_KEYWORDS, MAP_KEYWORDS, REFERENCES, nodes, resolve

MAX_COST: Final = 4000
"""Checks of one value, for which 10,000 values take a second."""

MAX_WORK: Final = 40_000_000
"""Cost of a schema times the size of a value."""

TOO_MUCH_WORK: Final = "Input has too many values or long numbers to be checked; send fewer or shorter ones"

_MAX_DEPTH: Final = 200

_RECURSION: Final = 20
"""The cost of a schema within itself: the engine remembers the result for each array and object."""

_WEIGHTS: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), 10),
    "multipleOf": 40,
    "uniqueItems": 20,
    "format": 50,
}
"""Keywords that cost more than others; a number, array or object in an `enum` costs 20."""

_NOT_CHECKED: Final = DATA_KEYWORDS | {"$defs", "definitions"}


def check_cost(schema: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a schema that makes too many checks of one value."""
    if schema_cost(schema) > MAX_COST:
        raise DefinitionError(
            f"the schema makes more than {MAX_COST} checks of one value; use fewer alternatives, and fewer "
            "numbers, arrays and objects in an enum"
        )


def schema_cost(root: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], int] | None = None) -> int:
    """Return how many checks of a value, and of the costliest of its members, a schema makes at most.

    `weigh` returns the cost of a schema without its subschemas.
    """
    costs = _Costs(root, weigh or _weight)
    cost = costs.of(root)
    return cost + sum(costs.known[each] for each in costs.recursive)


def value_size(value: Any) -> int:
    """Return the number of values and names in JSON data. Numbers that take long to compare count as more."""
    return sum(map(_size, _parts(value)))


def work_of_pairs(value: Any) -> int:
    """Return the work of `uniqueItems`, which compares each two integers beyond 63 bits in JSON data."""
    bits = [each.bit_length() for each in _parts(value) if isinstance(each, int)]
    each_pair = [14 + count**2 // 15_000 for count in bits if count > 63]
    return len(each_pair) * sum(each_pair)


def has_uncommon_number(value: Any) -> bool:
    """Return whether JSON data has a number that is compared with each integer of an `enum`."""
    return any(
        isinstance(each, float) or (isinstance(each, int) and each.bit_length() > 63)
        for each in _parts(value)
    )


def text_lengths(value: Any) -> list[int]:
    """Return the lengths of the texts in JSON data, and of the names of members."""
    return [len(each) for each in _texts(value)]


def text_bytes(value: Any) -> int:
    """Return the most bytes that the texts in JSON data, and the names of members, take in UTF-8."""
    return sum(len(each) if each.isascii() else 4 * len(each) for each in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    return (each for each in _parts(value) if isinstance(each, str))


def _parts(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Mapping):
            waiting += each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _size(value: Any) -> int:
    if isinstance(value, float) and not (value == 0 or 1e-5 < abs(value) < 1e16):
        return 10  # the engine computes with the digits
    if isinstance(value, int) and value.bit_length() > 63:
        return 10 + value.bit_length() ** 2 // 100_000
    return 1


class _Costs:
    def __init__(self, root: Mapping[str, Any], weigh: Callable[[Mapping[str, Any]], int]) -> None:
        self.root = root
        self.weigh = weigh
        self.known: dict[int, int] = {}
        self.open: list[int] = []
        self.recursive: set[int] = set()
        self.anchors = {
            f"#{node[keyword]}": node
            for node in nodes(root)
            for keyword in ("$anchor", "$dynamicAnchor")
            if keyword in node
        }

    def of(self, node: Any) -> int:
        """Return the cost of a subschema, or of a list of subschemas or names."""
        if isinstance(node, list):
            return sum(map(self.of, node))
        if not isinstance(node, dict):
            return 1
        if len(self.open) > _MAX_DEPTH:
            return MAX_COST + 1
        key = id(node)
        if key in self.open:
            self.recursive.add(key)
            return _RECURSION
        if key not in self.known:
            self.open.append(key)
            self.known[key] = self.weigh(node) + sum(starmap(self._of_keyword, node.items()))
            if "unevaluatedProperties" in node or "unevaluatedItems" in node:
                self.known[key] *= 3  # the engine checks the schemas beside them again
            self.open.pop()
        return self.known[key]

    def _of_keyword(self, keyword: str, operand: Any) -> int:
        if keyword in REFERENCES:
            return self.of(self.anchors.get(str(operand)) or resolve(self.root, operand))
        if keyword in _NOT_CHECKED or not isinstance(operand, (dict, list)):
            return 0
        if keyword == "properties" and isinstance(operand, dict):
            return max(map(self.of, operand.values()), default=0)
        return self.of(
            [*operand.values()] if keyword in MAP_KEYWORDS and isinstance(operand, dict) else operand
        )


def weight_of_comparing(schema: Mapping[str, Any]) -> int:
    """Return the cost of a schema without its subschemas for a number that is not common."""
    return _weight(schema, looked_up=(str,))


def _weight(schema: Mapping[str, Any], looked_up: tuple[type, ...] = (str, int)) -> int:
    """Return the cost of a schema without its subschemas, in which options of some types are looked up."""
    weight = 1 + sum(cost * _size(schema[each]) for each, cost in _WEIGHTS.items() if each in schema)
    options = schema["enum"] if isinstance(schema.get("enum"), list) else []
    options = [*options, *([schema["const"]] if "const" in schema else ())]
    if any({*map(type, options)} <= {each} for each in looked_up):
        return weight
    return weight + sum(
        20 * _size(each) if isinstance(each, (int, float, list, dict)) else 1 for each in options
    )
