"""Why a JSON Schema refuses JSON data: the places, and what should be there. Values are never quoted.

The validator has decided that the data is invalid. It is asked again for each subschema on the way to the
reasons, until that has taken half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.schema.error_texts import (
    EXAMPLES,
    MAX_PROBLEMS,
    WORDS,
    has_type,
    options_text,
    quote,
    type_names,
)
from mcp_roundtrip.schema.subschemas import escaped, resolve
from mcp_roundtrip.schema.validation_cost import MAX_WORK

ValuePath = tuple[str | int, ...]
Problem = tuple[ValuePath, str]
"""The path in the value, and a message that says what should be there."""

MAX_EXPLANATION_WORK: Final = MAX_WORK // 2

_COMPANIONS: Final = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
"""The keyword that changes the meaning of another one in draft 4."""

_ONLY_REFERENCE: Final = ("draft-07", "draft-06", "draft-04")
"""Dialects in which `$ref` hides the keywords beside it."""


class Validator(Protocol):
    """The validator of a JSON Schema and of its parts, which are known by JSON pointers."""

    @property
    def schema(self) -> Mapping[str, Any]: ...

    def is_valid_by(self, pointer: str, value: Any, /) -> bool: ...

    def satisfies(self, place: str, rule: Mapping[str, Any], value: Any, /) -> bool: ...

    def work(self, place: str, value: Any, /) -> int: ...


def explain(validator: Validator, value: Any) -> Iterator[Problem]:
    """Yield the problems of an invalid value, in the order of the schema."""
    return _Explanation(validator).reasons("#", validator.schema, value, ())


def problem_lines(validator: Validator, value: Any, root: str) -> list[str]:
    """Return a line for each problem of an invalid value. `root` is the name of the value."""
    found = list(islice(explain(validator, value), MAX_PROBLEMS + 1))
    lines = [f"{format_location(root, path)}: {problem}" for path, problem in found[:MAX_PROBLEMS]]
    return [*dict.fromkeys(lines), *(["and more"] if len(found) > MAX_PROBLEMS else [])]


class _Rule(Struct, frozen=True, eq=False):
    """A keyword of a schema, and the value that it applies to.

    `at` is the JSON pointer of the keyword, `operand` what the schema has under it.
    """

    at: str
    keyword: str
    operand: Any
    schema: Mapping[str, Any]
    value: Any
    path: ValuePath


class _Explanation(Struct, eq=False):
    """One explanation. Neither the schema nor the value may change during it: they are known by `id`."""

    validator: Validator
    work_left: int = MAX_EXPLANATION_WORK
    is_counting: bool = False
    """Whether the problems of alternatives are counted."""
    open_references: set[tuple[str, int]] = field(default_factory=set)

    def problems(self, pointer: str, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        if not self._is_valid(pointer, value):
            yield from self.reasons(pointer, schema, value, path)

    def reasons(self, pointer: str, schema: Any, value: Any, path: ValuePath) -> Iterator[Problem]:
        """Yield the problems of a value that a subschema refuses."""
        if not isinstance(schema, dict):
            yield path, "Input is not allowed"
            return
        if "type" in schema and not has_type(schema["type"], value):
            yield path, f"Input should be {type_names(schema)}"
            return
        found = False
        for keyword in self._keywords(schema):
            explain_keyword = _APPLICATORS.get(keyword, _Explanation._assertion)
            rule = _Rule(f"{pointer}/{keyword}", keyword, schema[keyword], schema, value, path)
            for problem in explain_keyword(self, rule):
                found = True
                yield problem
        if not found:
            yield path, "Input does not fit the schema"

    def _keywords(self, schema: Mapping[str, Any]) -> Iterable[str]:
        dialect = str(self.validator.schema.get("$schema"))
        is_hidden = "$ref" in schema and any(name in dialect for name in _ONLY_REFERENCE)
        last = "additionalProperties"  # what is wrong in known members comes first
        return ("$ref",) if is_hidden else sorted(schema, key=last.__eq__)

    def _is_valid(self, pointer: str, value: Any) -> bool:
        """Return whether a subschema accepts a value; also if no work is left."""
        return not self._has_work_left(pointer, value) or self.validator.is_valid_by(pointer, value)

    def _satisfies(self, place: str, rule: Mapping[str, Any], value: Any) -> bool:
        return not self._has_work_left(place, value) or self.validator.satisfies(place, rule, value)

    def _has_work_left(self, place: str, value: Any) -> bool:
        if self.work_left > 0:
            self.work_left -= self.validator.work(place, value)
        return self.work_left > 0

    def _assertion(self, rule: _Rule) -> Iterator[Problem]:
        """Yield the problem of a keyword that does not lead to another place."""
        length = len(rule.value) if isinstance(rule.value, str) else 0
        is_too_long = length > rule.schema.get("maxLength", length)
        if rule.keyword not in WORDS or (rule.keyword == "pattern" and is_too_long):
            return
        names = (rule.keyword, _COMPANIONS.get(rule.keyword, rule.keyword))
        demanded = {name: rule.schema[name] for name in names if name in rule.schema}
        if not self._satisfies(rule.at, demanded, rule.value):
            example = EXAMPLES.get(rule.operand) if rule.keyword == "format" else None
            such_as = f", such as {example}" if example else ""
            yield rule.path, f"Input should {WORDS[rule.keyword].format(quote(rule.operand))}{such_as}"

    # Keywords that apply subschemas or depend on each other

    def _ref(self, rule: _Rule) -> Iterator[Problem]:
        pointer = str(rule.operand)
        key = (pointer, id(rule.value))
        if key in self.open_references or not (pointer == "#" or pointer.startswith("#/")):
            return
        self.open_references.add(key)
        yield from self.problems(pointer, resolve(self.validator.schema, pointer), rule.value, rule.path)
        self.open_references.discard(key)

    def _enumeration(self, rule: _Rule) -> Iterator[Problem]:
        if not self._satisfies(rule.at, {rule.keyword: rule.operand}, rule.value):
            options = rule.operand if rule.keyword == "enum" else [rule.operand]
            yield rule.path, f"Input should be {options_text(options)}"

    def _properties(self, rule: _Rule) -> Iterator[Problem]:
        members = rule.value if isinstance(rule.value, dict) else {}
        for name, schema in rule.operand.items():
            if name in members:
                yield from self._member(f"{rule.at}/{escaped(name)}", schema, rule, name)

    def _required(self, rule: _Rule) -> Iterator[Problem]:
        if isinstance(rule.value, dict) and isinstance(rule.operand, list):
            missing = (name for name in rule.operand if name not in rule.value)
            yield from (((*rule.path, name), "Field required") for name in missing)

    def _dependent(self, rule: _Rule) -> Iterator[Problem]:
        members = rule.value if isinstance(rule.value, dict) else {}
        for name, required in rule.operand.items():
            if name in members and isinstance(required, list):
                yield from (
                    ((*rule.path, each), "Field required") for each in required if each not in members
                )
            elif name in members:
                yield from self.problems(f"{rule.at}/{escaped(name)}", required, rule.value, rule.path)

    def _pattern_properties(self, rule: _Rule) -> Iterator[Problem]:
        members = rule.value if isinstance(rule.value, dict) else {}
        for pattern, schema in rule.operand.items():
            for name in self._matching(pattern, members):
                yield from self._member(f"{rule.at}/{escaped(pattern)}", schema, rule, name)

    def _additional(self, rule: _Rule) -> Iterator[Problem]:
        members = rule.value if isinstance(rule.value, dict) else {}
        known = {*rule.schema.get("properties", ())}
        for pattern in rule.schema.get("patternProperties", ()):
            known |= {*self._matching(pattern, members)}
        for name in members:
            if name in known:
                continue
            if rule.operand is False:
                yield (*rule.path, name), "unknown member" if rule.path else "unknown argument"
            else:
                yield from self._member(rule.at, rule.operand, rule, name)

    def _member(self, at: str, schema: Any, rule: _Rule, step: str | int) -> Iterator[Problem]:
        yield from self.problems(at, schema, rule.value[step], (*rule.path, step))

    def _matching(self, pattern: str, names: Iterable[str]) -> list[str]:
        rule = {"pattern": pattern}
        return [name for name in names if self._satisfies(f"names {pattern}", rule, name)]

    def _names(self, rule: _Rule) -> Iterator[Problem]:
        for name in rule.value if isinstance(rule.value, dict) else ():
            for _, problem in self.problems(rule.at, rule.operand, name, ()):
                yield (*rule.path, name), problem.replace("Input", "The name", 1)

    def _items(self, rule: _Rule) -> Iterator[Problem]:
        items = rule.value if isinstance(rule.value, list) else []
        if isinstance(rule.operand, list):  # a tuple: `items` was one before 2020-12
            for number, schema in enumerate(rule.operand[: len(items)]):
                yield from self._member(f"{rule.at}/{number}", schema, rule, number)
            return
        first = {"items": "prefixItems", "additionalItems": "items"}[rule.keyword]
        for number in range(len(rule.schema.get(first, ())), len(items)):
            yield from self._member(rule.at, rule.operand, rule, number)

    def _all_of(self, rule: _Rule) -> Iterator[Problem]:
        for number, branch in enumerate(rule.operand):
            yield from self.problems(f"{rule.at}/{number}", branch, rule.value, rule.path)

    def _alternatives(self, rule: _Rule) -> Iterator[Problem]:
        fitting = sum(
            self._is_valid(f"{rule.at}/{number}", rule.value) for number in range(len(rule.operand))
        )
        if not fitting:
            yield from self._closest(rule)
        elif rule.keyword == "oneOf" and fitting > 1:
            yield rule.path, f"Input should fit one of the alternatives, not {fitting} of them"

    def _closest(self, rule: _Rule) -> Iterator[Problem]:
        """Yield the problems of the alternative of the value's type that has the fewest."""
        resolved = [self._resolved(f"{rule.at}/{n}", branch) for n, branch in enumerate(rule.operand)]
        schemas = [(pointer, schema) for pointer, schema in resolved if isinstance(schema, dict)]
        alike = [each for each in schemas if _is_alike(each[1], rule.value)]
        if alike and self.is_counting:  # counting within counting would take exponential time
            yield rule.path, "Input should fit an alternative"
        elif alike:
            closest = min(alike, key=lambda each: self._distance(each, rule.value))
            yield from self.problems(*closest, rule.value, rule.path)
        else:
            names = dict.fromkeys(type_names(schema) for _, schema in schemas)
            yield rule.path, f"Input should be {' or '.join(names) or 'another value'}"

    def _resolved(self, pointer: str, schema: Any) -> tuple[str, Any]:
        seen = set[str]()
        while isinstance(schema, dict) and str(schema.get("$ref")).startswith("#/") and pointer not in seen:
            seen.add(pointer)
            pointer = str(schema["$ref"])
            schema = resolve(self.validator.schema, pointer)
        return pointer, schema

    def _distance(self, alternative: tuple[str, Any], value: Any) -> int:
        """Return the number of problems; alternatives of which none fits count as one."""
        self.is_counting = True
        try:
            return sum(1 for _ in islice(self.problems(*alternative, value, ()), MAX_PROBLEMS))
        finally:
            self.is_counting = False

    def _condition(self, rule: _Rule) -> Iterator[Problem]:
        branch = "then" if self._is_valid(rule.at, rule.value) else "else"
        if branch in rule.schema:
            pointer = f"{rule.at.removesuffix('/if')}/{branch}"
            yield from self.problems(pointer, rule.schema[branch], rule.value, rule.path)

    def _unexplained(self, rule: _Rule) -> Iterator[Problem]:
        """Yield the problem of `not` and `contains`, which say little about the place."""
        if rule.keyword == "not":
            is_refused = self._is_valid(rule.at, rule.value)
        else:
            items = rule.value if isinstance(rule.value, list) else None
            is_refused = items is not None and not any(self._is_valid(rule.at, item) for item in items)
        if is_refused:
            yield rule.path, f"Input does not satisfy {rule.keyword}: {quote(rule.operand)}"


_APPLICATORS: Final[Mapping[str, Callable[[_Explanation, _Rule], Iterator[Problem]]]] = {
    "$ref": _Explanation._ref,
    "enum": _Explanation._enumeration,
    "const": _Explanation._enumeration,
    "required": _Explanation._required,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _Explanation._dependent),
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
    "not": _Explanation._unexplained,
    "contains": _Explanation._unexplained,
    "if": _Explanation._condition,
}


def _is_alike(schema: Mapping[str, Any], value: Any) -> bool:
    about_members = not schema.keys().isdisjoint(("required", "properties"))
    return has_type(schema.get("type", "object" if about_members else ()), value)
