"""Validation that accepts exactly the JSON that the advertised JSON Schema accepts.

For plain types, pydantic's strict mode decides as the JSON Schema does, so most calls build none. For others
the JSON Schema decides, and pydantic makes the typed value. Exceptions: `docs/reference/accepted-values.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator as PydanticValidator

from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.schema.core_schema_traversal import is_plain_to_read, nodes
from mcp_roundtrip.schema.explain_invalid_json import (
    MAX_EXPLANATION_WORK,
    Explanation,
    ValuePath,
    compile_schema,
    problem_lines,
)
from mcp_roundtrip.schema.json_schema_generator import build_json_schema
from mcp_roundtrip.schema.pydantic_validator import invalid_value, read_typed, typed_validator
from mcp_roundtrip.schema.unusable_types import refuse_unusable

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import CompiledSchema

MAX_PLAIN_TEXT: Final = 4_096
"""Characters of JSON text in which pydantic may collect every error, of up to 1 KB each."""

MAX_CONVERSIONS: Final = 1_000
MAX_PARSED_VALUES: Final = 20_000
"""Texts that are read as JSON, and values in them."""


class SchemaReader(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """Reads JSON objects, in messages `root`, that a JSON Schema, in messages `schema_name`, accepts.

    `json_schema` returns the advertised schema, and is called only when a value needs it.

    Clients send null or "" for members that a user left out. Such a value of a member in `optional` counts as
    left out if the JSON Schema refuses it. A member in `nullable` may be null.
    """

    json_schema: Callable[[], Mapping[str, Any]]
    root: str
    optional: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()
    schema_name: str = "inputSchema"

    def read(self, raw: Mapping[str, Any], *, is_lenient: bool = False) -> Any:
        """Return the value of JSON data. `is_lenient`: refused texts may hold JSON. Raises InvalidValue."""
        try:
            return self._read(raw)
        except InvalidValue:
            if is_lenient:
                with suppress(InvalidValue):
                    return self._read(self.with_parsed_json(raw))
            raise

    def with_parsed_json(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return an invalid object with JSON data in place of texts that hold it and that the schema refuses.

        A text that holds a text, or no JSON, stays. The result may be invalid. It is explained again after
        each change, for half a second at most: a model may write an object as text whose members are text
        again, and of a long input only the first problem is known. An object with half of a surrogate pair
        cannot be explained, and is not changed further.
        """
        changed = deepcopy(dict(raw))
        work_left, values_left, before = MAX_EXPLANATION_WORK, MAX_PARSED_VALUES, 0
        while values_left != before:
            before = values_left
            explanation = Explanation(self.validator, work_left)
            found = islice(explanation.problems(strict_json.with_exact_integers(changed)), MAX_CONVERSIONS)
            try:
                paths = [path for path, _ in found]
            except UnicodeEncodeError:
                break
            for path in paths:
                values_left -= _parse_at(changed, path, values_left)
            work_left = explanation.work_left
        return changed

    def _read(self, raw: Mapping[str, Any]) -> Any:
        given = self._without_empty(raw)
        exact, text = exact_input(given, self.root)
        self._check(exact, len(text))
        return dict(given)

    def _check(
        self, given: Mapping[str, Any], length: int, other_patterns: frozenset[str] = frozenset()
    ) -> None:
        value = {name: each for name, each in given.items() if each is not None or name not in self.nullable}
        if problem := self.validator.costs.exceeded_bound(value, length, other_patterns):
            raise InvalidValue(f"{format_location(self.root, ())}: {problem}")
        if found := problem_lines(self.validator, value, self.root):
            raise InvalidValue("\n".join(found))

    def _without_empty(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        empty = {name for name, member in raw.items() if member in (None, "") and name in self.optional}
        return self._own_validator.without_refused(raw, empty) if empty else raw

    @cached_property
    def validator(self) -> CompiledSchema:
        """The validator of the JSON Schema. Raises DefinitionError for what its dialect does not allow."""
        return compile_schema(self.json_schema(), self.schema_name)

    @property
    def _own_validator(self) -> CompiledSchema:
        return self.validator


class TypedReader(SchemaReader, frozen=True, eq=False, kw_only=True):
    """Reads JSON objects as values of a type. Raises DefinitionError for an unusable type."""

    types: TypeAdapter[Any]

    def __post_init__(self) -> None:
        refuse_unusable(self.types.core_schema, "parameter" if self.root else "field")

    def _read(self, raw: Mapping[str, Any]) -> Any:
        exact, text = exact_input(self._without_empty(raw), self.root)
        if self.is_plain and len(text) <= MAX_PLAIN_TEXT:
            try:
                return self.types.validate_json(text, strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                raise invalid_value(error, self.root) from None
        self._check(exact, len(text), self._own_patterns)
        return read_typed(self._typed_validator, text, self.root)

    @cached_property
    def is_plain(self) -> bool:
        return is_plain_to_read(self.types.core_schema)

    @cached_property
    def _own_validator(self) -> CompiledSchema:
        """The validator of the type: the schema of a form has not all of its patterns and formats."""
        return self.validator if self.root else compile_schema(build_json_schema(self.types))

    @cached_property
    def _typed_validator(self) -> PydanticValidator:
        return typed_validator(self.types.core_schema, self.validator.costs.patterns.keys())

    @cached_property
    def _own_patterns(self) -> frozenset[str]:
        """The patterns of the type that its JSON Schema does not have, such as those of a form."""
        patterns = (node["pattern"] for node in nodes(self.types.core_schema) if "pattern" in node)
        return frozenset(patterns).difference(self.validator.costs.patterns)


def _parse_at(value: Any, path: ValuePath, limit: int) -> int:
    """Replace the text at a path by the JSON data in it. Return how many values it has, at most `limit`."""
    try:
        *steps, last = path
        for step in steps:
            value = value[step]
        text = value[last]
        parsed = strict_json.parse_json(text, max_values=limit) if isinstance(text, str) else text
    except (KeyError, ValueError):  # the root; a missing member; text that holds no JSON
        return 0
    if not isinstance(text, str) or isinstance(parsed, str):
        return 0
    value[last] = parsed
    return strict_json.count_json_values(text, limit)


def exact_input(raw: Mapping[str, Any], root: str) -> tuple[dict[str, Any], str]:
    """Return an object in which 2.0 is 2, as in a JSON Schema, and its JSON text. Raises InvalidValue."""
    value = dict(raw)
    try:
        text = strict_json.compact_json(value)
        if ".0" in text or "e+" in text:
            value = strict_json.with_exact_integers(value)
            text = strict_json.compact_json(value)
    except (TypeError, ValueError):
        raise InvalidValue(f"{format_location(root, ())}: Input should be JSON") from None
    if r"\ud" in text and strict_json.has_half_of_a_pair(raw):
        raise InvalidValue(f"{format_location(root, ())}: a string holds half of a surrogate pair")
    return value, text
