"""Reads JSON exactly as the advertised JSON Schema says: what that refuses is refused, and nothing else is.

`docs/accepted-values.md` lists the exceptions. Validation is pydantic's strict mode, and the check of the
JSON Schema itself comes only where that is not the same: most calls never build a JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from mcp_roundtrip.canonical import compact
from mcp_roundtrip.schema.bounded_validation import MAX_COPIED, bounded, copies
from mcp_roundtrip.schema.strict_mode import is_exact
from mcp_roundtrip.schema.type_adapters import MAX_PROBLEMS, location, problems

_WHOLE_FLOAT: Final = re.compile(r"\d\.0[,\]}]|e\+")
"""How Python writes 2.0 and 1e300 within an array or object."""


class Refused(ValueError):
    """Says where and what, one line per problem, and quotes no value."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactReader:
    """Reads objects. `root` is their name in messages, `json_schema` what was advertised for `types`."""

    types: TypeAdapter[Any]
    json_schema: Callable[[], Mapping[str, Any]]
    root: str
    is_strict: bool
    nullable: frozenset[str]
    copies: int

    @classmethod
    def of(
        cls,
        types: TypeAdapter[Any],
        json_schema: Callable[[], Mapping[str, Any]],
        root: str,
        *,
        nullable: frozenset[str] = frozenset(),
    ) -> ExactReader:
        """A reader that builds the JSON Schema when it needs it.

        Members that are `nullable` may be null, whatever the JSON Schema says. Raises DefinitionError for a
        type that accepts nothing of what its JSON Schema says (and Unbounded, see `bounded`).
        """
        types = bounded(types)
        schema = types.core_schema
        return cls(types, json_schema, root, is_exact(schema), nullable, copies(schema))

    def read(self, raw: Mapping[str, Any]) -> Any:
        """The value of `raw`, which is JSON data. Raises Refused."""
        text = self._text(raw)
        # What the JSON Schema refuses, pydantic need not explain where that would take too much memory.
        is_costly = len(text) * self.copies > MAX_COPIED
        if self.is_strict and not is_costly:
            try:
                # JSON mode is what the schema promises: even a `strict` model takes its dates from strings.
                return self.types.validate_json(text, strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                refusal = _refusal(error, self.root)
            if not _WHOLE_FLOAT.search(text):
                raise Refused(refusal)
        if problem_lines := self._check(raw):
            raise Refused("\n".join(problem_lines) if is_costly else self._with_others(problem_lines, text))
        return self._coerce(raw, text)

    def coerce(self, raw: Mapping[str, Any]) -> Any:
        """The value of `raw`, whose strings may stand for numbers, too. Raises Refused."""
        return self._coerce(raw, self._text(raw))

    def _text(self, raw: Mapping[str, Any]) -> str:
        try:
            return compact(dict(raw))
        except (TypeError, ValueError):
            raise Refused(f"{location(self.root, ())}: Input should be JSON") from None

    def _check(self, raw: Mapping[str, Any]) -> list[str]:
        from mcp_roundtrip.schema.json_schema_check import Check  # most types do not need it
        from mcp_roundtrip.schema.patterns import TOO_LONG, TextTooLong

        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        try:
            found = list(islice(Check(self.json_schema()).problems(value), MAX_PROBLEMS + 1))
        except TextTooLong as error:
            return [f"{location(self.root, error.args[0])}: {TOO_LONG}"]
        lines = [f"{location(self.root, path)}: {problem}" for path, problem in found[:MAX_PROBLEMS]]
        return [*lines, *(["and more"] if len(found) > MAX_PROBLEMS else [])]

    def _with_others(self, found: list[str], text: str) -> str:
        """The lines `found`, and what else pydantic has to say: everything wrong is said at once."""
        try:
            self.types.validate_json(text, strict=False, by_alias=True, by_name=False)
        except ValidationError as error:
            places = tuple(f"{line.partition(': ')[0]}{end}" for line in found for end in ":.[")
            others = _refusal(error, self.root).splitlines()
            found = [*found, *(line for line in others if not line.startswith(places))]
        except Exception:  # an author's validator got what no client should send
            return "\n".join(found)
        return "\n".join(found)

    def _coerce(self, raw: Mapping[str, Any], text: str) -> Any:
        # What has been checked is not read strictly: 2.0 becomes an integer, and a validator that an author
        # puts before a date gives it a str, which strict mode takes from JSON alone.
        try:
            return self.types.validate_json(text, strict=False, by_alias=True, by_name=False)
        except ValidationError as error:
            refusal = _refusal(error, self.root)
        if _WHOLE_FLOAT.search(text):  # 1e300 is an integer, too, and pydantic takes none from such a float
            with suppress(ValidationError):
                whole = compact(_integers(dict(raw)))
                return self.types.validate_json(whole, strict=False, by_alias=True, by_name=False)
        raise Refused(refusal)


def _integers(value: Any) -> Any:
    """`value` with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _integers(member) for name, member in value.items()}
    return [_integers(item) for item in value] if isinstance(value, list) else value


def _refusal(error: ValidationError, root: str) -> str:
    found = problems(error, root)
    # What `compact` wrote can be wrong for its reader in two ways; the other is more than 200 levels.
    not_json = error.error_count() == 1 and error.errors(include_input=False)[0]["type"] == "json_invalid"
    if not_json and "recursion" not in found:
        return f"{location(root, ())}: a string holds half of a surrogate pair"
    return found
