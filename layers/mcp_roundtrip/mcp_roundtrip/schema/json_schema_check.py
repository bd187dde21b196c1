"""Check JSON data against the JSON Schema that pydantic wrote for a type.

The check replaces pydantic's validation where that would convert values. It supports only the keywords that
pydantic writes. jsonschema checks authors' own schemas (see `raw_arguments`); it is an extra that typed tools
do not need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field

from mcp_roundtrip.canonical import canonical_json
from mcp_roundtrip.schema.patterns import PatternBudget, TextTooLong
from mcp_roundtrip.schema.type_adapters import MAX_PROBLEMS

ValuePath = tuple[str | int, ...]
Problem = tuple[ValuePath, str]
"""The path in the value, and a message that says what should be there."""

_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", lambda value: is_integer(value)),
    "number": ("a number", lambda value: is_number(value)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}


def is_number(value: Any) -> bool:
    """Return whether `value` is a JSON number; a Python bool is an int, but not a JSON number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Return whether `value` is an integer to JSON Schema, as 2.0 is."""
    return is_number(value) and (isinstance(value, int) or value.is_integer())


class SchemaCheck(Struct, frozen=True, eq=False):
    """One check of one value against `schema`. Neither may change during it: the caches are keyed by `id`."""

    schema: Mapping[str, Any]
    # Without this cache, alternatives within alternatives would be checked exponentially often.
    _conforming: dict[tuple[int, int], bool] = field(default_factory=dict)
    _options: dict[int, frozenset[Hashable]] = field(default_factory=dict)
    _counting: list[None] = field(default_factory=list)
    """Not empty while the problems of alternatives are counted."""
    _patterns: PatternBudget = field(default_factory=PatternBudget)

    def problems(self, value: Any) -> Iterator[Problem]:
        """Yield the problems of `value`, in the order of the schema.

        Raises TextTooLong, with the place as its argument.
        """
        return self._problems(self.schema, value, ())

    def _problems(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if not isinstance(schema, dict):
            if schema is False:
                yield path, "Input is not allowed"
            return
        if "type" in schema and not _has_type(schema["type"], value):
            yield path, f"Input should be {_type_names(schema)}"
            return
        for keyword, rule in schema.items():
            if assertion := _ASSERTIONS.get(keyword):
                kind, conforms, words = assertion
                if _has_type(kind, value) and not conforms(rule, value):
                    yield path, f"Input should {words.format(_quote(rule))}"
            elif applicator := _APPLICATORS.get(keyword):
                yield from applicator(self, schema, value, path)

    def _conforms(self, schema: Any, value: Any) -> bool:
        if not isinstance(value, (dict, list)):
            return next(self._problems(schema, value, ()), None) is None
        key = id(schema), id(value)
        if key not in self._conforming:
            self._conforming[key] = next(self._problems(schema, value, ()), None) is None
        return self._conforming[key]

    def _resolved(self, schema: Any) -> Any:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._target(schema["$ref"])
        return schema

    def _target(self, reference: str) -> Any:
        return self.schema["$defs"][reference.removeprefix("#/$defs/")]

    # Keywords that apply subschemas or depend on each other

    def _ref(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        return self._problems(self._target(schema["$ref"]), value, path)

    def _enumeration(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        rule = schema["enum"] if "enum" in schema else [schema["const"]]
        if id(schema) not in self._options:
            self._options[id(schema)] = frozenset(map(equality_key, rule))
        if equality_key(value) not in self._options[id(schema)]:
            yield path, f"Input should be {' or '.join(map(_quote, rule[:20]))}"

    def _properties(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, dict):
            for name, member in schema["properties"].items():
                if name in value:
                    yield from self._problems(member, value[name], (*path, name))

    def _pattern(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        # A text longer than `maxLength` has that problem already, and may cost too much to match.
        if not isinstance(value, str) or len(value) > schema.get("maxLength", len(value)):
            return
        if not self._matches(schema["pattern"], value, path):
            yield path, f"Input should match the pattern {_quote(schema['pattern'])}"

    def _matches(self, pattern: str, text: str, path: ValuePath) -> bool:
        try:
            return self._patterns.matches(pattern, text)
        except TextTooLong:
            raise TextTooLong(path) from None

    def _required(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, dict):
            yield from (((*path, name), "Field required") for name in schema["required"] if name not in value)

    def _pattern_properties(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, dict):
            for pattern, member in schema["patternProperties"].items():
                for name in value:
                    if self._matches(pattern, name, (*path, name)):
                        yield from self._problems(member, value[name], (*path, name))

    def _additional(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if not isinstance(value, dict):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name in value:
            here = (*path, name)
            if name not in known and not any(self._matches(each, name, here) for each in patterns):
                if schema["additionalProperties"] is False:
                    yield here, "unknown member" if path else "unknown argument"
                else:
                    yield from self._problems(schema["additionalProperties"], value[name], here)

    def _names(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, dict):
            for name in value:
                for _, problem in self._problems(schema["propertyNames"], name, ()):
                    yield (*path, name), problem.replace("Input", "The name", 1)

    def _items(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, list):
            for at in range(len(schema.get("prefixItems", ())), len(value)):
                yield from self._problems(schema["items"], value[at], (*path, at))

    def _first_items(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if isinstance(value, list):
            for at, (member, item) in enumerate(zip(schema["prefixItems"], value, strict=False)):
                yield from self._problems(member, item, (*path, at))

    def _all_of(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        for branch in schema["allOf"]:
            yield from self._problems(branch, value, path)

    def _at_least_one(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if not any(self._conforms(branch, value) for branch in schema["anyOf"]):
            yield from self._closest(schema["anyOf"], value, path)

    def _exactly_one(self, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        fitting = sum(self._conforms(branch, value) for branch in schema["oneOf"])
        if fitting > 1:
            yield path, f"Input should fit one of the alternatives, not {fitting} of them"
        elif not fitting:
            yield from self._closest(schema["oneOf"], value, path)

    def _closest(self, branches: Iterable[Any], value: Any, path: ValuePath) -> Iterator[Problem]:
        """Yield the problems of the alternative of the value's type that has the fewest."""
        resolved = [self._resolved(branch) for branch in branches]
        alike = [branch for branch in resolved if "type" in branch and _has_type(branch["type"], value)]
        if alike and self._counting:  # counting within counting would take exponential time
            yield path, "Input should fit an alternative"
        elif alike:
            yield from self._problems(min(alike, key=lambda each: self._distance(each, value)), value, path)
        else:
            yield path, f"Input should be {' or '.join(dict.fromkeys(map(_type_names, resolved)))}"

    def _distance(self, schema: Any, value: Any) -> int:
        """Return the number of problems; alternatives of which none fits count as one."""
        self._counting.append(None)
        try:
            return sum(1 for _ in islice(self._problems(schema, value, ()), MAX_PROBLEMS))
        finally:
            self._counting.pop()


_APPLICATORS: Final[Mapping[str, Callable[[SchemaCheck, Any, Any, ValuePath], Iterator[Problem]]]] = {
    "$ref": SchemaCheck._ref,
    "enum": SchemaCheck._enumeration,
    "const": SchemaCheck._enumeration,
    "pattern": SchemaCheck._pattern,
    "required": SchemaCheck._required,
    "properties": SchemaCheck._properties,
    "patternProperties": SchemaCheck._pattern_properties,
    "additionalProperties": SchemaCheck._additional,
    "propertyNames": SchemaCheck._names,
    "items": SchemaCheck._items,
    "prefixItems": SchemaCheck._first_items,
    "allOf": SchemaCheck._all_of,
    "anyOf": SchemaCheck._at_least_one,
    "oneOf": SchemaCheck._exactly_one,
}

Rule = Callable[[Any, Any], bool]

_ASSERTIONS: Final[Mapping[str, tuple[str, Rule, str]]] = {
    "minLength": ("string", lambda rule, value: len(value) >= rule, "have {} characters or more"),
    "maxLength": ("string", lambda rule, value: len(value) <= rule, "have {} characters at most"),
    "minimum": ("number", lambda rule, value: value >= rule, "be {} or more"),
    "maximum": ("number", lambda rule, value: value <= rule, "be {} or less"),
    "exclusiveMinimum": ("number", lambda rule, value: value > rule, "be more than {}"),
    "exclusiveMaximum": ("number", lambda rule, value: value < rule, "be less than {}"),
    "multipleOf": ("number", lambda rule, value: _is_multiple(rule, value), "be a multiple of {}"),
    "minItems": ("array", lambda rule, value: len(value) >= rule, "have {} items or more"),
    "maxItems": ("array", lambda rule, value: len(value) <= rule, "have {} items at most"),
    "uniqueItems": ("array", lambda rule, value: not rule or _are_unique(value), "have no item twice"),
    "minProperties": ("object", lambda rule, value: len(value) >= rule, "have {} members or more"),
    "maxProperties": ("object", lambda rule, value: len(value) <= rule, "have {} members at most"),
}
"""Keyword -> type of the values it applies to, the rule, and the words for it."""


def equality_key(value: Any) -> Hashable:
    """Return a key that is equal for equal values of JSON Schema: 1 equals 1.0, and true does not equal 1."""
    # A client can choose thousands of large integers with one Python hash (see `long_inputs`).
    by_text = isinstance(value, (dict, list)) or (is_number(value) and abs(value) > 2**53)
    return canonical_json(value) if by_text else (isinstance(value, bool), value)


def _are_unique(items: list[Any]) -> bool:
    return len(set(map(equality_key, items))) == len(items)


def _is_multiple(step: float, value: float) -> bool:
    if isinstance(step, int) and isinstance(value, int):
        return value % step == 0
    # Decimal arithmetic on the digits: 0.3 is a multiple of 0.1, although their doubles are not.
    quotient = Decimal(str(value)) / Decimal(str(step))
    return quotient == quotient.to_integral_value()


def _has_type(kinds: Any, value: Any) -> bool:
    return any(_TYPES[kind][1](value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _type_names(schema: Any) -> str:
    if "enum" in schema:
        return " or ".join(map(_quote, schema["enum"][:20]))
    kinds = schema.get("type", ())
    names = [_TYPES[kind][0] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " or ".join(names) or "another value"


def _quote(rule: Any) -> str:
    text = json.dumps(rule, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
