"""Bounds on the time that a JSON Schema takes for a value.

The cost of a schema, the number of checks that it makes of one value, times the size of a value is the work,
in units of 25 ns. Composition multiplies: if both alternatives of an `anyOf` lead to one `$ref`, the target
is checked twice, and on the next level four times.

The engine of patterns (Rust's `regex`, in jsonschema-rs) never backtracks: its time is at most the length of
the text times the size of the compiled pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from itertools import starmap
from operator import or_
from typing import Any, Final

from msgspec import Struct, field

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
"""Checks of a schema times the size of a value: 1 s."""

SHORT_INPUT: Final = 4_096
"""Characters of JSON text. The size is at most twice as much, so no schema needs `MAX_WORK` for it."""

MAX_MATCHING: Final = 2_500_000_000
"""Characters of text times bytes of compiled patterns: 1 s, at 0.4 ns for the costliest known pattern."""

_MAX_DEPTH: Final = 200

_WEIGHTS: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), 10),
    "multipleOf": 40,
    "uniqueItems": 20,
    "format": 50,
}
"""Keywords that cost more than others."""

_OPTIONS_OF_CONTAINER: Final = 60
_OPTIONS_PER_CHECK: Final = 3
"""Options of an `enum` for one check. An array or object counts as 60 options."""

_NOT_CHECKED: Final = DATA_KEYWORDS | {"$defs", "definitions"}

_BYTES_PER_STATE: Final = 16
"""The fewest bytes of a compiled pattern for each of its states."""

_UNLIMITED: Final = r"(?s:\\.|\[(?:\\.|[^]\\])*\]|(?P<found>[*+]|\{\d+,\}|\|))"
"""Finds what lets a match be longer than the pattern, or begin elsewhere."""

_FAST_SEARCHES: Final = 10
"""Searches for equal items that take 1/6 s if a short input is all integers beyond 63 bits."""

_STEP_WORK: Final = 1_000
"""The work for a step of an explanation in Python."""

_COMPILING_WORK: Final = 10
"""The work to compile a subschema once for several steps."""

_COPYING_WORK: Final = 100
"""The work to measure a value in Python, and to copy it, or a thousand bytes of text, into an error."""

_RECORD_KEYWORDS: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties"),
        *("$schema", "$defs", "definitions", "title", "description"),
    }
)
"""Keywords beside which each property of an object is checked apart."""


class Cost(Struct, frozen=True):
    """The most work of a schema with one value and with the costliest of its members.

    `searches` are for equal items, `matches` of each pattern with a text. All other work is `checks`.
    """

    checks: int = 0
    searches: int = 0
    matches: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Cost) -> Cost:
        # Most keywords have no pattern, and a copy takes long.
        matches = self.matches + other.matches if other.matches else self.matches
        return Cost(self.checks + other.checks, self.searches + other.searches, matches)

    def __or__(self, other: Cost) -> Cost:
        """Return the higher of each kind of cost."""
        return Cost(
            max(self.checks, other.checks),
            max(self.searches, other.searches),
            self.matches | other.matches if other.matches else self.matches,
        )


_NOTHING: Final = Cost()

_RECURSIVE_REFERENCE: Final = Cost(20)
"""The cost of a schema within itself: the engine remembers the result for each array and object."""


def check_cost(schema: Mapping[str, Any]) -> None:
    """Raise DefinitionError for a schema that makes too many checks of one value."""
    if SchemaCosts(schema).whole.checks > MAX_COST:
        raise DefinitionError(
            f"the schema makes more than {MAX_COST} checks of one value; use fewer alternatives, and fewer "
            "numbers, arrays and objects in an enum"
        )


class SchemaCosts:
    """The costs of a schema and of its subschemas."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._subschemas = [*subschemas(root)]
        self._known: dict[int, Cost] = {}
        self._open: list[int] = []
        self._recursive: set[int] = set()
        self._anchors = {
            f"#{node[keyword]}": node
            for node in self._subschemas
            for keyword in ("$anchor", "$dynamicAnchor")
            if keyword in node
        }
        self._cost_of(root)
        self._recursive_cost = sum((self._known[each] for each in self._recursive), _NOTHING)
        self.whole = self._cost_of(root) + self._recursive_cost

    def exceeded_bound(
        self, value: Any, length: int, other_patterns: frozenset[str] = frozenset()
    ) -> str | None:
        """Return the problem of a client's data that may take more than a second to check, or None.

        `length` is that of its text. `other_patterns` are those that are not in the schema.
        """
        if length <= SHORT_INPUT and self._is_fast_if_short and not other_patterns:
            return None
        checks, characters = self._work("#", value)
        if characters + matching(dict.fromkeys(other_patterns, 1), value) > MAX_MATCHING:
            return "Input is too long to be matched with its pattern; send a shorter text"
        if checks > MAX_WORK:
            return "Input has too many values or long numbers to be checked; send fewer or shorter ones"
        return None

    def work_of_errors(self, pointer: str, value: Any) -> int:
        """Return the most work to ask a subschema for errors."""
        checks, characters = self._work(pointer, value)
        asking = _STEP_WORK + _COMPILING_WORK * len(self._subschemas) + _COPYING_WORK * copied_size(value)
        return asking + checks + characters * MAX_WORK // MAX_MATCHING

    @cached_property
    def _is_fast_if_short(self) -> bool:
        """Whether every short input is checked within a second."""
        size = sum(times * pattern_size(pattern) for pattern, times in self.whole.matches.items())
        return size * SHORT_INPUT <= MAX_MATCHING and self.whole.searches <= _FAST_SEARCHES

    def _work(self, pointer: str, value: Any) -> tuple[int, int]:
        """Return the work of checks, and the characters that are matched times the bytes of the patterns."""
        parts = self._parts_of(value) if pointer == "#" else [(self.whole, value)]
        checks = sum(_work_of_checks(cost, part) for cost, part in parts)
        return checks, sum(matching(cost.matches, part) for cost, part in parts)

    def _parts_of(self, value: Any) -> list[tuple[Cost, Any]]:
        """Return JSON data with its cost: an object property by property, if they are checked apart."""
        is_open = isinstance(self._root.get("additionalProperties"), dict)
        if is_open or not self._root.keys() <= _RECORD_KEYWORDS or not isinstance(value, dict):
            return [(self.whole, value)]
        properties = self._root.get("properties", {})
        names = value.keys() & properties.keys()
        return [(self._cost_of(properties[name]) + self._recursive_cost, value[name]) for name in names]

    def _cost_of(self, node: Any) -> Cost:
        """Return the cost of a subschema, or of a list of subschemas or names."""
        if isinstance(node, list):
            return sum(map(self._cost_of, node), _NOTHING)
        if not isinstance(node, dict):
            return Cost(1)
        if len(self._open) > _MAX_DEPTH:
            return Cost(MAX_COST + 1)
        key = id(node)
        if key in self._open:
            self._recursive.add(key)
            return _RECURSIVE_REFERENCE
        if key not in self._known:
            self._open.append(key)
            cost = sum(starmap(self._cost_of_keyword, node.items()), _own_cost(node))
            if "unevaluatedProperties" in node or "unevaluatedItems" in node:
                cost = cost + cost + cost  # the engine checks the schemas beside them again
            self._known[key] = cost
            self._open.pop()
        return self._known[key]

    def _cost_of_keyword(self, keyword: str, operand: Any) -> Cost:
        if keyword in REFERENCES:
            return self._cost_of(self._anchors.get(str(operand)) or resolve(self._root, operand))
        if keyword in _NOT_CHECKED or not isinstance(operand, (dict, list)):
            return _NOTHING
        if keyword == "properties" and isinstance(operand, dict):
            return reduce(or_, map(self._cost_of, operand.values()), _NOTHING)
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
    return Cost(checks, int(schema.get("uniqueItems") is True), Counter(patterns_of(schema)))


def matching(matches: Mapping[str, int], value: Any) -> int:
    """Return the characters of texts in JSON data times the bytes of compiled patterns.

    `matches` says how often each pattern is matched with one text.
    """
    lengths = [len(each) for each in _texts(value)] if matches else []
    return sum(times * _matched(pattern, lengths) for pattern, times in matches.items())


def _matched(pattern: str, lengths: list[int]) -> int:
    """Return how many characters of texts the engine may read, times the bytes of the pattern."""
    size = pattern_size(pattern)
    has_no_limit = any(each["found"] for each in re.finditer(_UNLIMITED, pattern))
    is_limited = pattern.startswith("^") and not has_no_limit
    longest = size // _BYTES_PER_STATE if is_limited else max(lengths, default=0)
    return size * sum(min(each, longest) for each in lengths)


def _work_of_checks(cost: Cost, value: Any) -> int:
    return cost.checks * value_size(value) + (cost.searches and cost.searches * _work_of_pairs(value))


def value_size(value: Any) -> int:
    """Return the number of values and names in JSON data. Numbers that take long to compare count as more."""
    return sum(map(_size, _parts(value)))


def _work_of_pairs(value: Any) -> int:
    """Return the work of `uniqueItems`, which compares each two integers beyond 63 bits in JSON data."""
    bits = [each.bit_length() for each in _parts(value) if isinstance(each, int)]
    each_pair = [14 + count**2 // 15_000 for count in bits if count > 63]
    return len(each_pair) * sum(each_pair)


def copied_size(value: Any) -> int:
    """Return the size of a copy of JSON data: a thousand bytes of text are as much as a value."""
    return value_size(value) + _bytes_of_text(value) // 1_000


def error_size(operand: Any) -> int:
    """Return the thousands of bytes that a copy of a keyword's operand adds to an error."""
    return (100 * value_size(operand) + _bytes_of_text(operand)) // 1_000


def _bytes_of_text(value: Any) -> int:
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
