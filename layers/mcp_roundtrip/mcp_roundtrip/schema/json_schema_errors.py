"""Why a JSON Schema refuses JSON data: the places, and what should be there. Values are never quoted.

The validator has decided that the data is invalid. It is asked again for each subschema on the way to the
reasons, until that has taken half a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.schema.error_texts import (
    EXAMPLES,
    EXCLUSIVE,
    MAX_PROBLEMS,
    WORDS,
    has_type,
    options_text,
    quote,
    type_names,
)
from mcp_roundtrip.schema.subschemas import escaped, resolve
from mcp_roundtrip.schema.validation_cost import MAX_WORK

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import SchemaValidator

ValuePath = tuple[str | int, ...]
Problem = tuple[ValuePath, str]
"""The path in the value, and a message that says what should be there."""

MAX_EXPLANATION_WORK: Final = MAX_WORK // 2

_ONLY_REFERENCE: Final = ("draft-07", "draft-06", "draft-04")
"""Dialects in which `$ref` hides the keywords beside it."""


def problems(validator: SchemaValidator, value: Any, root: str) -> list[str]:
    """Return a line for each problem of JSON data with the name `root`; none for valid data."""
    if validator.is_valid(value):
        return []
    found = list(islice(explain(validator, value), MAX_PROBLEMS + 1))
    lines = [f"{format_location(root, path)}: {problem}" for path, problem in found[:MAX_PROBLEMS]]
    return [*dict.fromkeys(lines), *(["and more"] if len(found) > MAX_PROBLEMS else [])]


def input_problems(
    validator: SchemaValidator, value: Any, root: str, other_patterns: frozenset[str] = frozenset()
) -> list[str]:
    """Do the same for a client's data, which is refused if it may take more than a second to check.

    `other_patterns` are matched with its texts, too.
    """
    if problem := validator.exceeded_bound(value, other_patterns):
        return [f"{format_location(root, ())}: {problem}"]
    return problems(validator, value, root)


def explain(validator: SchemaValidator, value: Any) -> Iterator[Problem]:
    """Yield the problems of an invalid value, in the order of the schema."""
    return _Explanation(validator).reasons(_Place("#", validator.schema, value, ()))


class _Place(Struct, frozen=True, eq=False):
    """A subschema and its JSON pointer, and the part of the value that it applies to, with its path."""

    pointer: str
    schema: Any
    value: Any
    path: ValuePath

    def within(self, steps: str, schema: Any) -> _Place:
        """Return the place of a subschema for the same value."""
        return _Place(f"{self.pointer}/{steps}", schema, self.value, self.path)

    def member(self, steps: str, schema: Any, step: str | int) -> _Place:
        """Return the place of a subschema for a member or an item."""
        return _Place(f"{self.pointer}/{steps}", schema, self.value[step], (*self.path, step))


class _Explanation(Struct, eq=False):
    """One explanation. Neither the schema nor the value may change during it: they are known by `id`."""

    validator: SchemaValidator
    work_left: int = MAX_EXPLANATION_WORK
    is_counting: bool = False
    """Whether the problems of alternatives are counted."""
    open_references: set[tuple[str, int]] = field(default_factory=set)

    def problems(self, place: _Place) -> Iterator[Problem]:
        if not self._is_valid(place):
            yield from self.reasons(place)

    def reasons(self, place: _Place) -> Iterator[Problem]:
        """Yield the problems of a value that a subschema refuses."""
        schema, value, path = place.schema, place.value, place.path
        if not isinstance(schema, dict):
            yield path, "Input is not allowed"
            return
        if "type" in schema and not has_type(schema["type"], value):
            yield path, f"Input should be {type_names(schema)}"
            return
        refused = self._refused(place)
        found = False
        for keyword in self._keywords(schema):
            problems = [(path, _text(keyword, schema))] if keyword in refused else self._below(place, keyword)
            for problem in problems:
                found = True
                yield problem
        if not found:
            yield path, "Input does not fit the schema"

    def _keywords(self, schema: Mapping[str, Any]) -> Iterable[str]:
        dialect = str(self.validator.schema.get("$schema"))
        is_hidden = "$ref" in schema and any(name in dialect for name in _ONLY_REFERENCE)
        last = "additionalProperties"  # what is wrong in known members comes first
        return ("$ref",) if is_hidden else sorted(schema, key=last.__eq__)

    def _is_valid(self, place: _Place) -> bool:
        """Return whether a subschema accepts a value; also if no work is left."""
        return not self._has_work_left(place) or self.validator.is_valid_by(place.pointer, place.value)

    def _refused(self, place: _Place) -> set[str]:
        """Return the keywords without subschemas that refuse a value; none if no work is left."""
        if not self._has_work_left(place):
            return set()
        refused = self.validator.refused_by(place.pointer, place.schema, place.value)
        return refused - {"pattern"} if "maxLength" in refused else refused

    def _has_work_left(self, place: _Place) -> bool:
        if self.work_left > 0:
            self.work_left -= self.validator.work(place.value)
        return self.work_left > 0

    def _below(self, place: _Place, keyword: str) -> Iterator[Problem]:
        """Yield the problems of a keyword that leads to other places."""
        operand, value, path = place.schema[keyword], place.value, place.path
        match keyword:
            case "$ref":
                yield from self._reference(place, str(operand))
            case "anyOf" | "oneOf":
                yield from self._alternatives(place, keyword)
            case "not" if self._is_valid(place.within("not", operand)):
                yield path, f"Input does not satisfy not: {quote(operand)}"
            case "contains" if isinstance(value, list):
                if not any(self._is_valid(place.member(keyword, operand, n)) for n in range(len(value))):
                    yield path, f"Input does not satisfy contains: {quote(operand)}"
            case "required" if isinstance(value, dict):
                yield from _missing(operand, place)
            case "dependentRequired" | "dependencies" if isinstance(value, dict):
                for name, names in operand.items():
                    if name in value and isinstance(names, list):
                        yield from _missing(names, place)
                for part in self._parts(place, keyword):
                    yield from self.problems(part)
            case "propertyNames" if isinstance(value, dict):
                for name in value:
                    for _, problem in self.problems(_Place(f"{place.pointer}/{keyword}", operand, name, ())):
                        yield (*path, name), problem.replace("Input", "The name", 1)
            case "additionalProperties" if operand is False and isinstance(value, dict):
                problem = "unknown member" if path else "unknown argument"
                yield from (((*path, name), problem) for name in self._additional(place))
            case _:
                for part in self._parts(place, keyword):
                    yield from self.problems(part)

    def _parts(self, place: _Place, keyword: str) -> Iterator[_Place]:
        """Yield the places that a keyword leads to, at each of which the value must be valid."""
        operand, value = place.schema[keyword], place.value
        match keyword:
            case "allOf":
                yield from (place.within(f"allOf/{n}", branch) for n, branch in enumerate(operand))
            case "if":
                branch = "then" if self._is_valid(place.within("if", operand)) else "else"
                yield place.within(branch, place.schema.get(branch, True))
            case "dependentSchemas" | "dependencies" if isinstance(value, dict):
                for name, schema in operand.items():
                    if name in value and not isinstance(schema, list):
                        yield place.within(f"{keyword}/{escaped(name)}", schema)
            case "properties" if isinstance(value, dict):
                for name, schema in operand.items():
                    if name in value:
                        yield place.member(f"{keyword}/{escaped(name)}", schema, name)
            case "patternProperties" if isinstance(value, dict):
                for pattern, schema in operand.items():
                    for name in self._matching(pattern, value):
                        yield place.member(f"{keyword}/{escaped(pattern)}", schema, name)
            case "additionalProperties" if isinstance(value, dict):
                yield from (place.member(keyword, operand, name) for name in self._additional(place))
            case "prefixItems" | "items" if isinstance(value, list) and isinstance(operand, list):
                for number, schema in enumerate(operand[: len(value)]):
                    yield place.member(f"{keyword}/{number}", schema, number)
            case "items" | "additionalItems" if isinstance(value, list):
                # Before 2020-12, `items` had the schemas of the first items.
                first = place.schema.get("prefixItems" if keyword == "items" else "items", ())
                yield from (place.member(keyword, operand, n) for n in range(len(first), len(value)))

    def _reference(self, place: _Place, pointer: str) -> Iterator[Problem]:
        key = (pointer, id(place.value))
        if key in self.open_references or not (pointer == "#" or pointer.startswith("#/")):
            return
        self.open_references.add(key)
        schema = resolve(self.validator.schema, pointer)
        yield from self.problems(_Place(pointer, schema, place.value, place.path))
        self.open_references.discard(key)

    def _additional(self, place: _Place) -> list[str]:
        known = {*place.schema.get("properties", ())}
        for pattern in place.schema.get("patternProperties", ()):
            known |= {*self._matching(pattern, place.value)}
        return [name for name in place.value if name not in known]

    def _matching(self, pattern: str, names: Iterable[str]) -> list[str]:
        places = [_Place(f"names {pattern}", {"pattern": pattern}, name, ()) for name in names]
        return [place.value for place in places if not self._refused(place)]

    def _alternatives(self, place: _Place, keyword: str) -> Iterator[Problem]:
        branches = [
            self._resolved(place.within(f"{keyword}/{number}", branch))
            for number, branch in enumerate(place.schema[keyword])
        ]
        fitting = sum(map(self._is_valid, branches))
        if not fitting:
            yield from self._closest(place, branches)
        elif keyword == "oneOf" and fitting > 1:
            yield place.path, f"Input should fit one of the alternatives, not {fitting} of them"

    def _closest(self, place: _Place, branches: list[_Place]) -> Iterator[Problem]:
        """Yield the problems of the alternative of the value's type that has the fewest."""
        schemas = [branch for branch in branches if isinstance(branch.schema, dict)]
        alike = [branch for branch in schemas if _is_alike(branch)]
        if alike and self.is_counting:  # counting within counting would take exponential time
            yield place.path, "Input should fit an alternative"
        elif alike:
            self.is_counting = True
            counts = [sum(1 for _ in islice(self.problems(branch), MAX_PROBLEMS)) for branch in alike]
            self.is_counting = False
            yield from self.problems(alike[counts.index(min(counts))])
        else:
            names = dict.fromkeys(type_names(branch.schema) for branch in schemas)
            yield place.path, f"Input should be {' or '.join(names) or 'another value'}"

    def _resolved(self, place: _Place) -> _Place:
        """Return the place that a reference leads to."""
        seen = set[str]()
        while isinstance(place.schema, dict) and str(place.schema.get("$ref")).startswith("#/"):
            pointer = str(place.schema["$ref"])
            if pointer in seen:
                break
            seen.add(pointer)
            place = _Place(pointer, resolve(self.validator.schema, pointer), place.value, place.path)
        return place


def _is_alike(place: _Place) -> bool:
    about_members = not place.schema.keys().isdisjoint(("required", "properties"))
    return has_type(place.schema.get("type", "object" if about_members else ()), place.value)


def _missing(names: Iterable[str], place: _Place) -> Iterator[Problem]:
    yield from (((*place.path, name), "Field required") for name in names if name not in place.value)


def _text(keyword: str, schema: Mapping[str, Any]) -> str:
    """Return what a keyword without subschemas demands."""
    operand = schema[keyword]
    if keyword in ("enum", "const"):
        return f"Input should be {options_text(operand if keyword == 'enum' else [operand])}"
    example = EXAMPLES.get(operand) if keyword == "format" else None
    strict = EXCLUSIVE.get(keyword, "")
    words = WORDS[strict if schema.get(strict) is True else keyword]
    return f"Input should {words.format(quote(operand))}{f', such as {example}' if example else ''}"
