"""Validation that accepts exactly the JSON that the advertised JSON Schema accepts.

`docs/reference/accepted-values.md` lists the exceptions. pydantic's strict mode validates. The JSON Schema
itself is built and checked only where strict mode differs from it, so most calls never build one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.schema.bounded_validation import (
    MAX_COPIED_CHARACTERS,
    SHORT_INPUT,
    bound_validator,
    text_copies,
)
from mcp_roundtrip.schema.strict_mode import strict_mode_is_exact
from mcp_roundtrip.schema.type_adapters import describe_errors, format_location

if TYPE_CHECKING:
    from mcp_roundtrip.schema.schema_validator import SchemaValidator

_WHOLE_FLOAT: Final = r"\d\.0[,\]}]|e\+"
"""Matches 2.0 and 1e300 as Python writes them within an array or object."""


class InvalidValue(ValueError):
    """A value does not fit its schema. The text has one line per problem, with its place, and no value.

    It may quote texts of the author's validators, and names that a client made; `text_for_log` does not.
    """

    def __init__(self, text: str, text_for_log: Callable[[], str] | None = None) -> None:
        super().__init__(text)
        self.text_for_log = text_for_log or (lambda: text)


class ExactReader(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """Reads JSON objects. `root` is their name in messages, `json_schema` returns what was advertised."""

    types: TypeAdapter[Any]
    json_schema: Callable[[], Mapping[str, Any]]
    root: str
    is_strict_exact: bool
    nullable: frozenset[str]
    text_copies: int

    @classmethod
    def from_types(
        cls,
        types: TypeAdapter[Any],
        json_schema: Callable[[], Mapping[str, Any]],
        root: str,
        *,
        nullable: frozenset[str] = frozenset(),
    ) -> ExactReader:
        """Create a reader that calls `json_schema` only when a value needs it.

        Members in `nullable` may be null even if the JSON Schema refuses null. Raises UnboundedType (see
        `bounded_validation`), and DefinitionError for a type that accepts nothing that its JSON Schema does.
        """
        types = bound_validator(types)
        schema = types.core_schema
        return cls(types, json_schema, root, strict_mode_is_exact(schema), nullable, text_copies(schema))

    def read(self, raw: Mapping[str, Any]) -> Any:
        """Return the value of `raw`, which is JSON data. Raises InvalidValue."""
        text = self._encode(raw)
        # pydantic does not explain what the JSON Schema refuses if that would take too much memory.
        is_costly = len(text) * self.text_copies > MAX_COPIED_CHARACTERS
        if self.is_strict_exact and not is_costly:
            try:
                # JSON mode: the schema promises that even a `strict` model reads dates from strings.
                return self.types.validate_json(text, strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                invalid = _invalid_value(error, self.root)
            if not re.search(_WHOLE_FLOAT, text):
                raise invalid
        if lines := self._check(raw, text):
            own = "\n".join(lines)
            raise InvalidValue(own if is_costly else self._add_pydantic_errors(lines, text), lambda: own)
        return self._validate_lax(raw, text)

    def without_refused_nulls(self, raw: Mapping[str, Any], optional: Collection[str]) -> Mapping[str, Any]:
        """Return `raw` without those `optional` members that are null and whose schema refuses null.

        Clients send null for what was left out. Where null is a value of the schema, it stays one.
        """
        nulls = [name for name, member in raw.items() if member is None and name in optional]
        refused = {name for name in nulls if not self._validator.is_valid_member(name, None)}
        return {name: member for name, member in raw.items() if name not in refused}

    def read_strings(self, raw: Mapping[str, str]) -> Any:
        """Return the value of `raw`, whose strings may stand for numbers. Raises InvalidValue."""
        return self._validate_lax(raw, self._encode(raw))

    def _encode(self, raw: Mapping[str, Any]) -> str:
        try:
            return compact_json(dict(raw))
        except (TypeError, ValueError):
            raise InvalidValue(f"{format_location(self.root, ())}: Input should be JSON") from None

    def _check(self, raw: Mapping[str, Any], text: str) -> list[str]:
        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        if len(text) > SHORT_INPUT and (line := self._pattern_problem(text)):
            return [line]
        if self._validator.is_valid(value):
            return []
        from mcp_roundtrip.schema.explanation import problem_lines  # for errors only

        return problem_lines(self._validator, value, self.root)

    def _pattern_problem(self, text: str) -> str | None:
        from mcp_roundtrip.schema.patterns import MAX_MATCHING, TEXT_TOO_LONG, total_size  # for long inputs

        is_too_long = len(text) * total_size(self.json_schema()) > MAX_MATCHING
        return f"{format_location(self.root, ())}: {TEXT_TOO_LONG}" if is_too_long else None

    @cached_property
    def _validator(self) -> SchemaValidator:
        from mcp_roundtrip.schema.schema_validator import SchemaValidator  # most types do not need it

        return SchemaValidator.compile(self.json_schema(), asserts_formats=False)

    def _add_pydantic_errors(self, lines: list[str], text: str) -> str:
        """Add pydantic's errors in other places, so that one refusal lists all problems."""
        try:
            self.types.validate_json(text, strict=False, by_alias=True, by_name=False)
        except ValidationError as error:
            places = tuple(f"{line.partition(': ')[0]}{end}" for line in lines for end in ":.[")
            others = str(_invalid_value(error, self.root)).splitlines()
            lines = [*lines, *(line for line in others if not line.startswith(places))]
        except Exception:  # an author's validator got an invalid value and raised something else
            return "\n".join(lines)
        return "\n".join(lines)

    def _validate_lax(self, raw: Mapping[str, Any], text: str) -> Any:
        # Lax mode after the check: 2.0 becomes an integer, and a date is read from the str that a
        # BeforeValidator returns, which strict mode reads from JSON only.
        try:
            return self.types.validate_json(text, strict=False, by_alias=True, by_name=False)
        except ValidationError as error:
            invalid = _invalid_value(error, self.root)
        if re.search(_WHOLE_FLOAT, text):  # 1e300 is an integer in JSON Schema, but not to pydantic
            with suppress(ValidationError):
                whole = compact_json(_with_integers(dict(raw)))
                return self.types.validate_json(whole, strict=False, by_alias=True, by_name=False)
        raise invalid


def _with_integers(value: Any) -> Any:
    """Replace whole floats by integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    return [_with_integers(item) for item in value] if isinstance(value, list) else value


def _invalid_value(error: ValidationError, root: str) -> InvalidValue:
    problems = describe_errors(error, root)
    # pydantic rejects the JSON of `compact_json` for two reasons: half of a surrogate pair, and 200 levels.
    is_invalid_json = (
        error.error_count() == 1 and error.errors(include_input=False)[0]["type"] == "json_invalid"
    )
    if is_invalid_json and "recursion" not in problems:
        return InvalidValue(f"{format_location(root, ())}: a string holds half of a surrogate pair")
    return InvalidValue(problems, lambda: describe_errors(error, root, for_log=True))
