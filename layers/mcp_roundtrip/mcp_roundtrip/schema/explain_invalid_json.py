"""Why a JSON Schema refuses JSON data: the places, and what should be there. Values are never quoted.

The validator is asked for the errors within alternatives, for half a second at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.schema.error_texts import first_lines, keyword_text, unknown_text
from mcp_roundtrip.schema.subschemas import MAX_SCHEMA_DEPTH, escaped, resolve
from mcp_roundtrip.schema.validation_cost import MAX_WORK

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

    from mcp_roundtrip.schema.json_schema_validator import CompiledSchema

ValuePath = tuple[str | int, ...]
Problem = tuple[ValuePath, str]  # the path, and what should be there

MAX_EXPLANATION_WORK: Final = MAX_WORK // 2


def compile_schema(schema: Mapping[str, Any], name: str = "schema") -> CompiledSchema:
    """Compile a schema: see `CompiledSchema.compile`."""
    from mcp_roundtrip.schema.json_schema_validator import CompiledSchema  # 4 ms; plain types need none

    return CompiledSchema.compile(schema, name)


def problem_lines(validator: CompiledSchema, value: Any, root: str) -> list[str]:
    """Return a line for each problem of JSON data with the name `root`; none for valid data."""
    if validator.is_valid(value):
        return []
    problems = Explanation(validator, root=root).problems(value)
    return first_lines(f"{format_location(root, path)}: {problem}" for path, problem in problems)


_WITHOUT_PLACE: Final = (
    "Input does not fit the schema; leave out members and items that the schema does not have, or send less "
    "at once"
)
"""The problem of `unevaluatedProperties`, and of a value for which no work is left."""

_TYPE_KEYWORDS: Final = ("type", "enum", "const", "falseSchema")


class _Place(Struct, frozen=True, eq=False):
    """The JSON pointer of a subschema, and the part of the value that it applies to, with its path."""

    pointer: str
    value: Any
    path: ValuePath

    def at(self, pointer: str) -> _Place:
        return _Place(pointer, self.value, self.path)

    def part(self, steps: Iterable[str | int]) -> _Place:
        """Follow a path of jsonschema-rs, which has the name "01" as 1, and leaves out the name ""."""
        value, path = self.value, self.path
        for step in steps:
            if isinstance(value, dict) and isinstance(step, int):
                # Not by int(), which refuses thousands of digits.
                step = next((name for name in value if re.fullmatch(f"[+]?0*{step}", name)), "")
            try:
                value = value[step]
            except (LookupError, TypeError):
                break
            path = (*path, step)
        return _Place(self.pointer, value, path)


class _Alternative(Struct, frozen=True, eq=False):
    """The number of errors of an alternative, and their texts: the errors hold copies of the value.

    `other_type` is the text about a value of another type, `members` those about members with a wrong value.
    """

    place: _Place
    count: int
    other_type: str | None
    members: Mapping[str | int, str]


class Explanation(Struct, eq=False):
    """Explains one value, whose parts are known by `id`: it must not change."""

    validator: CompiledSchema
    work_left: int = MAX_EXPLANATION_WORK
    root: str = ""
    open_places: set[tuple[str, int]] = field(default_factory=set)

    def problems(self, value: Any) -> Iterator[Problem]:
        """Yield the problems of an invalid value, those of unknown members last."""
        return self._reasons(_Place("#", value, ()))

    def _reasons(self, place: _Place) -> Iterator[Problem]:
        key = (place.pointer, id(place.value))
        if key in self.open_places:
            return
        self.open_places.add(key)
        found = False
        for error in _without_consequences(self._errors(place)):
            part = place.part(error.instance_path)
            for problem in self._problems(error, part.at(_pointer(error.schema_path))):
                found = True
                yield problem
        self.open_places.discard(key)
        if not found:
            yield place.path, _WITHOUT_PLACE

    def _errors(self, place: _Place) -> list[ValidationError]:
        """Return the errors of a value by a subschema; none if no work is left."""
        if self.work_left > 0:
            self.work_left -= self.validator.costs.work_of_errors(place.pointer, place.value)
        return self.validator.errors(place.pointer, place.value) if self.work_left > 0 else []

    def _problems(self, error: ValidationError, place: _Place) -> Iterator[Problem]:
        path = place.path
        match error.kind.name, error.kind.as_dict():
            case "required", {"property": name}:
                yield (*path, name), "Field required"
            case "additionalProperties", {"unexpected": names}:
                yield from self._unknown(names, path)
            case "falseSchema", _ if _is_of_unknown_members(place):
                yield from self._unknown(place.value, path)
            case "propertyNames", {"error": of_name}:
                name = of_name.instance
                inner = _Place(_pointer(of_name.schema_path), name, (*path, name))
                for _, problem in self._problems(of_name, inner):
                    yield inner.path, problem.replace("Input", "The name", 1)
            case "not", {"schema": {"not": {"anyOf": branches} | {"oneOf": branches} as group}}:
                [keyword] = group
                places = [place.at(f"{place.pointer}/not/{keyword}/{n}") for n in range(len(branches))]
                yield from self._alternatives([self._resolved(each) for each in places])
            case "contains" | "not", _:  # as the author wrote it, not as the copy has it
                keyword = place.pointer.rpartition("/")[2]  # may be minContains
                yield path, keyword_text(keyword, resolve(self.validator.schema, place.pointer))
            case _:
                yield path, _text(error)

    def _unknown(self, names: Iterable[str], path: ValuePath) -> Iterator[Problem]:
        problem = unknown_text(self.root, (*path, ""))
        return (((*path, name), problem) for name in names)

    def _alternatives(self, branches: list[_Place]) -> Iterator[Problem]:
        """Yield the problems of the alternative of the value's type that has the fewest.

        If each alternative demands another value of one member, such as a discriminator, that is the problem.
        """
        path = branches[0].path
        tried = [self._try(each) for each in branches]
        of_type = [each for each in tried if each.other_type is None]
        fitting = sum(1 for each in of_type if each.count == 0)
        if self.work_left <= 0:
            yield path, "Input should fit an alternative"
        elif fitting > 1:
            yield path, f"Input should fit one of the alternatives, not {fitting} of them"
        elif (name := _refused_by_all(of_type)) is not None:
            yield branches[0].part([name]).path, _any_of(each.members[name] for each in of_type)
        elif of_type:
            yield from self._reasons(min(of_type, key=lambda each: each.count).place)
        else:
            yield path, _any_of(str(each.other_type) for each in tried)

    def _try(self, place: _Place) -> _Alternative:
        errors = _without_consequences(self._errors(place))
        of_type = (each for each in errors if each.kind.name in _TYPE_KEYWORDS and not each.instance_path)
        members = {
            each.instance_path[0]: _text(each)
            for each in errors
            if each.kind.name in ("const", "enum") and len(each.instance_path) == 1
        }
        return _Alternative(place, len(errors), next(map(_text, of_type), None), members)

    def _resolved(self, place: _Place) -> _Place:
        """Return the place that a reference leads to: it is compiled once for all references to it."""
        for _ in range(MAX_SCHEMA_DEPTH):
            match resolve(self.validator.shallow, place.pointer):
                case {"$ref": str(reference), **others} if not others:
                    place = place.at(reference)
                case _:
                    break
        return place


def _refused_by_all(alternatives: Sequence[_Alternative]) -> str | int | None:
    """Return a member whose value each of several alternatives refuses, or None."""
    if len(alternatives) < 2:
        return None
    first, *others = alternatives
    return next((name for name in first.members if all(name in each.members for each in others)), None)


def _any_of(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts)).replace(" or Input should be ", " or ")


def _is_of_unknown_members(place: _Place) -> bool:
    """Return whether `additionalProperties` refuses an object. A member may have this name, too."""
    return place.pointer.endswith("/additionalProperties") and isinstance(place.value, dict)


def _text(error: ValidationError) -> str:
    return keyword_text(error.kind.name, next(iter(error.kind.as_dict().values()), None))


def _without_consequences(errors: list[ValidationError]) -> list[ValidationError]:
    """Leave out other errors of a value of the wrong type. Unknown members come last."""
    of_type: dict[tuple[str | int, ...], ValidationError] = {}
    for error in sorted(errors, key=lambda each: each.kind.name != "type"):
        if error.kind.name in _TYPE_KEYWORDS:  # an enum says more than its type
            of_type[tuple(error.instance_path)] = error
    found = [each for each in errors if of_type.get(tuple(each.instance_path), each) is each]
    return sorted(found, key=lambda each: each.kind.name == "additionalProperties")


def _pointer(steps: list[str | int]) -> str:
    return "#" + "".join(f"/{escaped(str(step))}" for step in steps)
