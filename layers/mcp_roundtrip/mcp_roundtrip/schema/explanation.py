"""Why a JSON Schema refuses JSON data: the places, and what should be there. Values are never quoted.

The validator has decided that the data is invalid. It is asked again for each subschema on the way to the
reasons, at most `MAX_CHECKS` times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct, field

from mcp_roundtrip.schema.schema_validator import SchemaValidator, escaped
from mcp_roundtrip.schema.type_adapters import MAX_PROBLEMS, format_location

ValuePath = tuple[str | int, ...]
Problem = tuple[ValuePath, str]
"""The path in the value, and a message that says what should be there."""

MAX_CHECKS: Final = 20_000
"""Checks by a subschema for one explanation."""


def _is_number(value: Any) -> bool:
    """Return whether `value` is a JSON number; a Python bool is an int, but not a JSON number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Return whether `value` is an integer to JSON Schema, as 2.0 is."""
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", _is_integer),
    "number": ("a number", _is_number),
    "string": ("a string", lambda value: isinstance(value, str)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}

_WORDS: Final[Mapping[str, str]] = {
    "minLength": "have {} characters or more",
    "maxLength": "have {} characters at most",
    "pattern": "match the pattern {}",
    "format": "have the format {}",
    "minimum": "be {} or more",
    "maximum": "be {} or less",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minItems": "have {} items or more",
    "maxItems": "have {} items at most",
    "uniqueItems": "have no item twice",
    "minProperties": "have {} members or more",
    "maxProperties": "have {} members at most",
}
"""What a keyword demands. Its value refers to no other schema."""

_COMPANIONS: Final = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
"""The keyword that changes the meaning of another one in draft 4."""

_ONLY_REFERENCE: Final = ("draft-07", "draft-06", "draft-04")
"""Dialects in which `$ref` hides the keywords beside it."""


def explain(validator: SchemaValidator, value: Any) -> Iterator[Problem]:
    """Yield the problems of an invalid value, in the order of the schema."""
    return _Explanation(validator).problems("#", validator.schema, value, ())


def problem_lines(validator: SchemaValidator, value: Any, root: str) -> list[str]:
    """Return a line for each problem of an invalid value. `root` is the name of the value."""
    found = list(islice(explain(validator, value), MAX_PROBLEMS + 1))
    lines = [f"{format_location(root, path)}: {problem}" for path, problem in found[:MAX_PROBLEMS]]
    return [*dict.fromkeys(lines), *(["and more"] if len(found) > MAX_PROBLEMS else [])]


class _Explanation(Struct, eq=False):
    """One explanation. Neither the schema nor the value may change during it: they are known by `id`."""

    validator: SchemaValidator
    checks_left: int = MAX_CHECKS
    is_counting: bool = False
    """Whether the problems of alternatives are counted."""
    open_references: set[tuple[str, int]] = field(default_factory=set)

    def problems(self, pointer: str, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if self._is_valid(pointer, value):
            return
        if not isinstance(schema, dict):
            yield path, "Input is not allowed"
            return
        if "type" in schema and not _has_type(schema["type"], value):
            yield path, f"Input should be {_type_names(schema)}"
            return
        found = False
        for keyword in self._keywords(schema):
            explained = _APPLICATORS.get(keyword, _Explanation._rule)
            for problem in explained(self, f"{pointer}/{keyword}", keyword, schema, value, path):
                found = True
                yield problem
        if not found:
            yield path, "Input does not fit the schema"

    def _keywords(self, schema: Mapping[str, Any]) -> Iterable[str]:
        dialect = str(self.validator.schema.get("$schema"))
        is_hidden = "$ref" in schema and any(name in dialect for name in _ONLY_REFERENCE)
        return ("$ref",) if is_hidden else schema

    def _is_valid(self, pointer: str, value: Any) -> bool:
        """Return whether a subschema accepts a value; also if no check is left."""
        self.checks_left -= 1
        return self.checks_left < 0 or self.validator.is_valid_by(pointer, value)

    def _rule(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        """Yield the problem of a keyword that does not lead to another place."""
        is_too_long = isinstance(value, str) and len(value) > schema.get("maxLength", len(value))
        if keyword not in _WORDS or (keyword == "pattern" and is_too_long):
            return
        names = (keyword, _COMPANIONS.get(keyword, keyword))
        if not self.validator.satisfies({name: schema[name] for name in names if name in schema}, value):
            yield path, f"Input should {_WORDS[keyword].format(_quote(schema[keyword]))}"

    # Keywords that apply subschemas or depend on each other

    def _ref(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        pointer = str(schema["$ref"])
        key = (pointer, id(value))
        if key in self.open_references or not (pointer == "#" or pointer.startswith("#/")):
            return
        self.open_references.add(key)
        yield from self.problems(pointer, self._target(pointer), value, path)
        self.open_references.discard(key)

    def _target(self, pointer: str) -> Any:
        node: Any = self.validator.schema
        for step in pointer.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            node = node[int(name)] if isinstance(node, list) else node[name]
        return node

    def _enumeration(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if not self.validator.satisfies({keyword: schema[keyword]}, value):
            options = schema["enum"] if keyword == "enum" else [schema["const"]]
            yield path, f"Input should be {_options(options)}"

    def _properties(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if isinstance(value, dict):
            for name, member in schema["properties"].items():
                if name in value:
                    yield from self.problems(f"{at}/{escaped(name)}", member, value[name], (*path, name))

    def _required(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if isinstance(value, dict) and isinstance(schema["required"], list):
            yield from (((*path, name), "Field required") for name in schema["required"] if name not in value)

    def _pattern_properties(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if isinstance(value, dict):
            for pattern, member in schema["patternProperties"].items():
                for name in self._matching(pattern, value):
                    yield from self.problems(f"{at}/{escaped(pattern)}", member, value[name], (*path, name))

    def _additional(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if not isinstance(value, dict):
            return
        known = {*schema.get("properties", ())}
        for pattern in schema.get("patternProperties", ()):
            known |= {*self._matching(pattern, value)}
        for name in value:
            if name in known:
                continue
            if schema[keyword] is False:
                yield (*path, name), "unknown member" if path else "unknown argument"
            else:
                yield from self.problems(at, schema[keyword], value[name], (*path, name))

    def _matching(self, pattern: str, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.validator.satisfies({"pattern": pattern}, name)]

    def _names(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if isinstance(value, dict):
            for name in value:
                for _, problem in self.problems(at, schema[keyword], name, ()):
                    yield (*path, name), problem.replace("Input", "The name", 1)

    def _items(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        if not isinstance(value, list):
            return
        if isinstance(members := schema[keyword], list):  # a tuple: `items` was one before 2020-12
            for number, (member, item) in enumerate(zip(members, value, strict=False)):
                yield from self.problems(f"{at}/{number}", member, item, (*path, number))
            return
        first = {"items": "prefixItems", "additionalItems": "items"}[keyword]
        for number in range(len(schema.get(first, ())), len(value)):
            yield from self.problems(at, members, value[number], (*path, number))

    def _all_of(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        for number, branch in enumerate(schema["allOf"]):
            yield from self.problems(f"{at}/{number}", branch, value, path)

    def _alternatives(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        fitting = sum(self._is_valid(f"{at}/{number}", value) for number in range(len(schema[keyword])))
        if not fitting:
            yield from self._closest(at, schema[keyword], value, path)
        elif keyword == "oneOf" and fitting > 1:
            yield path, f"Input should fit one of the alternatives, not {fitting} of them"

    def _closest(self, at: str, branches: list[Any], value: Any, path: ValuePath) -> Iterator[Problem]:
        """Yield the problems of the alternative of the value's type that has the fewest."""
        resolved = [self._resolved(f"{at}/{number}", branch) for number, branch in enumerate(branches)]
        alike = [each for each in resolved if isinstance(each[1], dict) and _is_alike(each[1], value)]
        if alike and self.is_counting:  # counting within counting would take exponential time
            yield path, "Input should fit an alternative"
        elif alike:
            yield from self.problems(*min(alike, key=lambda each: self._distance(each, value)), value, path)
        else:
            names = (_type_names(schema) for _, schema in resolved if isinstance(schema, dict))
            yield path, f"Input should be {' or '.join(dict.fromkeys(names)) or 'another value'}"

    def _resolved(self, pointer: str, schema: Any) -> tuple[str, Any]:
        seen = set[str]()
        while isinstance(schema, dict) and str(schema.get("$ref")).startswith("#/") and pointer not in seen:
            seen.add(pointer)
            pointer = str(schema["$ref"])
            schema = self._target(pointer)
        return pointer, schema

    def _distance(self, alternative: tuple[str, Any], value: Any) -> int:
        """Return the number of problems; alternatives of which none fits count as one."""
        self.is_counting = True
        try:
            return sum(1 for _ in islice(self.problems(*alternative, value, ()), MAX_PROBLEMS))
        finally:
            self.is_counting = False

    def _other(
        self, at: str, keyword: str, schema: Mapping[str, Any], value: Any, path: ValuePath
    ) -> Iterator[Problem]:
        """Yield the problem of a keyword that says little about the place."""
        match keyword:
            case "not":
                fits = not self._is_valid(at, value)
            case "if":
                branch = "then" if self._is_valid(at, value) else "else"
                pointer = f"{at.removesuffix('/if')}/{branch}"
                if branch in schema:
                    yield from self.problems(pointer, schema[branch], value, path)
                return
            case _:  # contains
                fits = not isinstance(value, list) or any(self._is_valid(at, item) for item in value)
        if not fits:
            yield path, f"Input does not satisfy {keyword}: {_quote(schema[keyword])}"


Explain = Callable[[_Explanation, str, str, Mapping[str, Any], Any, ValuePath], Iterator[Problem]]

_APPLICATORS: Final[Mapping[str, Explain]] = {
    "$ref": _Explanation._ref,
    "enum": _Explanation._enumeration,
    "const": _Explanation._enumeration,
    "required": _Explanation._required,
    "properties": _Explanation._properties,
    "patternProperties": _Explanation._pattern_properties,
    "additionalProperties": _Explanation._additional,
    "propertyNames": _Explanation._names,
    "items": _Explanation._items,
    "prefixItems": _Explanation._items,
    "additionalItems": _Explanation._items,
    "allOf": _Explanation._all_of,
    "anyOf": _Explanation._alternatives,
    "oneOf": _Explanation._alternatives,
    "not": _Explanation._other,
    "contains": _Explanation._other,
    "if": _Explanation._other,
}


def _has_type(kinds: Any, value: Any) -> bool:
    return any(_TYPES[kind][1](value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _is_alike(schema: Mapping[str, Any], value: Any) -> bool:
    return "type" in schema and _has_type(schema["type"], value)


def _type_names(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return _options(schema["enum"])
    kinds = schema.get("type", ())
    names = [_TYPES[kind][0] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " or ".join(names) or "another value"


def _options(options: list[Any]) -> str:
    return " or ".join(map(_quote, options[:20]))


def _quote(rule: Any) -> str:
    text = json.dumps(rule, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
