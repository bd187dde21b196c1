"""Bounds on the time that a JSON Schema takes for a value.

The work is the cost of a schema, the checks that it makes of one value, times the size of a value, in units
of 25 ns. Composition multiplies: if both alternatives of an `anyOf` lead to one `$ref`, the target is checked
twice, and on the next level four times.

The engine of patterns (Rust's `regex`, in jsonschema-rs) never backtracks: its time is at most the length of
the text times the size of the compiled pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import cached_property, reduce
from operator import or_
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.pattern_checks import pattern_size
from mcp_roundtrip.schema.subschemas import (
    DATA_KEYWORDS,
    MAP_KEYWORDS,
    REFERENCES,
    patterns_of,
    resolve,
    subschemas,
)

MAX_COST: Final = 4000
"""Checks of one value, for which 10,000 values take a second."""

MAX_WORK: Final = 40_000_000
"""The work of a value: 1 s."""

MATCHED_PER_CHECK: Final = 64
"""Characters of text times bytes of the compiled pattern for one check, of the costliest known pattern."""

_MAX_DEPTH: Final = 200

_WEIGHTS: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), 10),
    "multipleOf": 100,
    "uniqueItems": 20,
    "format": 50,
}
"""Keywords that cost more than others."""

_OPTIONS_OF_CONTAINER: Final = 60
_OPTIONS_PER_CHECK: Final = 3
"""Options of an `enum` for one check. An array or object counts as 60 options."""

_LARGEST_SIZE: Final = 2
"""The largest size of a value for each character of its JSON text: `1e-9` and a comma have 10."""

_LARGEST_COMPARISON: Final = 1_300
"""The most work of `uniqueItems` for each character: that of an integer of 64 bits has 19."""

_STEP_WORK: Final = 1_000
"""The work for a step of an explanation in Python."""

_COMPILING_WORK: Final = 10
"""The work to compile a subschema once for several steps."""

_COPYING_WORK: Final = 100
"""The work to measure a value in Python, and to copy it, or a thousand bytes of text, into an error."""

_NOT_CHECKED: Final = DATA_KEYWORDS | {"$defs", "definitions"}

_BYTES_PER_STATE: Final = 16
"""The fewest bytes of a compiled pattern for each of its states."""

_UNLIMITED: Final = r"(?s:\\.|\[(?:\\.|[^]\\])*\]|(?P<found>[*+]|\{\d+,\}|\|))"
"""Finds what lets a match be longer than the pattern, or begin elsewhere."""

_RECORD_KEYWORDS: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties"),
        *("$schema", "$defs", "definitions", "title", "description"),
    }
)
"""Keywords beside which each property of an object is checked apart."""


class WorkKind(Enum):
    CHECKS = "checks of one value"
    UNIQUE = "uses of uniqueItems"


CHECKS, UNIQUE = WorkKind

Cost = Counter[str | WorkKind]
"""The most work of each kind, and the most matches of each pattern with one text."""

_NOTHING: Final = Cost()
_RECURSIVE_REFERENCE: Final = Cost({CHECKS: 20})
"""The cost of a schema within itself: the engine remembers the result for each array and object."""


def check_cost(schema: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a schema that makes too many checks of one value."""
    if SchemaCosts(schema).whole[CHECKS] > MAX_COST:
        raise DefinitionError(
            f"the schema makes more than {MAX_COST} checks of one value; use fewer alternatives, and fewer "
            "numbers, arrays and objects in an enum"
        )


class SchemaCosts:
    """The costs of a schema and of its subschemas."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._count = sum(1 for _ in subschemas(root))
        self._known: dict[int, Cost] = {}
        self._open: list[int] = []
        self._recursive: set[int] = set()
        self._cost_of(root)
        self._recursive_cost = sum((self._known[each] for each in self._recursive), Cost())
        self.whole = self._cost_of(root) + self._recursive_cost

    def exceeded_bound(self, value: Any, length: int, other_patterns: Collection[str] = ()) -> str | None:
        """Return the problem of a client's data that may take more than a second to check, or None.

        `length` is that of its text. `other_patterns` are those that are not in the schema.
        """
        if length * self._work_per_character <= MAX_WORK and not other_patterns:
            return None
        if self._work_of_parts(value) + _work(Cost(other_patterns), value) <= MAX_WORK:
            return None
        return "Input has too many values, or too long texts or numbers, to be checked; send less at once"

    def work_of_errors(self, pointer: str, value: Any) -> int:
        """Return the most work to ask a subschema for errors."""
        asking = _STEP_WORK + _COMPILING_WORK * self._count + _COPYING_WORK * copied_size(value)
        return asking + (self._work_of_parts(value) if pointer == "#" else _work(self.whole, value))

    @cached_property
    def patterns(self) -> dict[str, int]:
        """How often a text is matched with each pattern, at most."""
        return _patterns(self.whole)

    @cached_property
    def _work_per_character(self) -> int:
        """The most work of a value for each character of its JSON text."""
        sizes = sum(times * pattern_size(each) for each, times in self.patterns.items())
        unmatched = _LARGEST_SIZE * self.whole[CHECKS] + _LARGEST_COMPARISON * self.whole[UNIQUE]
        return unmatched + sizes // MATCHED_PER_CHECK

    def _work_of_parts(self, value: Any) -> int:
        """Return the work of JSON data: of an object property by property, if they are checked apart."""
        is_open = isinstance(self._root.get("additionalProperties"), dict)
        if is_open or not self._root.keys() <= _RECORD_KEYWORDS or not isinstance(value, dict):
            return _work(self.whole, value)
        properties = self._root.get("properties", {})
        names = value.keys() & properties.keys()
        return sum(
            _work(self._cost_of(properties[name]) + self._recursive_cost, value[name]) for name in names
        )

    def _cost_of(self, node: Any) -> Cost:
        """Return the cost of a subschema, or of a list of subschemas or names."""
        if isinstance(node, list):
            return sum(map(self._cost_of, node), Cost())
        if not isinstance(node, dict):
            return Cost({CHECKS: 1})
        if len(self._open) > _MAX_DEPTH:
            return Cost({CHECKS: MAX_COST + 1})
        key = id(node)
        if key in self._open:
            self._recursive.add(key)
            return _RECURSIVE_REFERENCE
        if key not in self._known:
            self._open.append(key)
            cost = _own_cost(node)
            for keyword, operand in node.items():
                if inner := self._cost_of_keyword(keyword, operand):  # a sum takes long
                    cost += inner
            if "unevaluatedProperties" in node or "unevaluatedItems" in node:
                cost = cost + cost + cost  # the engine checks the schemas beside them again
            self._known[key] = cost
            self._open.pop()
        return self._known[key]

    def _cost_of_keyword(self, keyword: str, operand: Any) -> Cost:
        if keyword in REFERENCES:
            return self._cost_of(resolve(self._root, operand))
        if keyword in _NOT_CHECKED or not isinstance(operand, (dict, list)):
            return _NOTHING
        if keyword == "properties" and isinstance(operand, dict):
            return reduce(or_, map(self._cost_of, operand.values()), Cost())
        return self._cost_of(
            [*operand.values()] if keyword in MAP_KEYWORDS and isinstance(operand, dict) else operand
        )


def _own_cost(schema: Mapping[str, Any]) -> Cost:
    """Return the cost of a schema without its subschemas. In an `enum` of texts, a value is looked up."""
    checks = 1 + sum(cost * _size(schema[each]) for each, cost in _WEIGHTS.items() if each in schema)
    options = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const", "")]
    if not all(isinstance(each, str) for each in options):
        sizes = (_OPTIONS_OF_CONTAINER if isinstance(each, (list, dict)) else _size(each) for each in options)
        checks += sum(sizes) // _OPTIONS_PER_CHECK
    cost = Cost({CHECKS: checks, UNIQUE: int(schema.get("uniqueItems") is True)})
    cost.update(set(patterns_of(schema)))
    return cost


def _work(cost: Cost, value: Any) -> int:
    patterns = _patterns(cost)
    lengths = [len(each) for each in _parts(value) if isinstance(each, str)] if patterns else []
    matched = sum(times * _matched(pattern, lengths) for pattern, times in patterns.items())
    compared = cost[UNIQUE] and cost[UNIQUE] * sum(map(_comparison_work, _parts(value)))
    return cost[CHECKS] * value_size(value) + compared + matched // MATCHED_PER_CHECK


def _patterns(cost: Cost) -> dict[str, int]:
    return {pattern: times for pattern, times in cost.items() if isinstance(pattern, str)}


def _comparison_work(value: Any) -> int:
    """Return the work of `uniqueItems`, which compares each two integers beyond 63 bits, for one of them."""
    bits = value.bit_length() if isinstance(value, int) else 0
    return 50 * (420 + bits) if bits > 63 else 0


def _matched(pattern: str, lengths: list[int]) -> int:
    """Return how many characters of texts the engine may read, times the bytes of the pattern."""
    size = pattern_size(pattern)
    has_no_limit = any(each["found"] for each in re.finditer(_UNLIMITED, pattern))
    is_limited = pattern.startswith("^") and not has_no_limit
    longest = size // _BYTES_PER_STATE if is_limited else max(lengths, default=0)
    return size * sum(min(each, longest) for each in lengths)


def value_size(value: Any) -> int:
    """Return the number of values and names in JSON data. Numbers that take long to compare count as more."""
    return sum(map(_size, _parts(value)))


def copied_size(value: Any) -> int:
    """Return the size of a copy of JSON data: a thousand bytes of text are as much as a value."""
    texts = (each for each in _parts(value) if isinstance(each, str))
    return value_size(value) + sum(len(each) if each.isascii() else 4 * len(each) for each in texts) // 1_000


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
