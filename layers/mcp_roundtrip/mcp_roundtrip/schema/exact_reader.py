"""Validation that accepts exactly the JSON that the advertised JSON Schema accepts.

The JSON Schema decides, with formats asserted, and after it the author's validators, which pydantic runs. For
plain types, pydantic's strict mode decides the same without a JSON Schema, so most calls never build one.
`docs/reference/accepted-values.md` lists the exceptions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.schema.core_schemas import is_plain_to_read, nodes
from mcp_roundtrip.schema.type_adapters import has_half_of_a_pair
from mcp_roundtrip.schema.unusable_types import refuse_unusable

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator as PydanticValidator

    from mcp_roundtrip.schema.schema_validator import SchemaValidator

SHORT_INPUT: Final = 4_096
"""The longest input, in characters, of which pydantic collects every error. Each takes up to 1,000 bytes."""

_NARROW: Final = 50
"""Fields of records for which `SHORT_INPUT` holds: `{}` has an error for each, in each choice of a union."""

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
    is_plain: bool
    nullable: frozenset[str]

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

        Members in `nullable` may be null even if the JSON Schema refuses null. Raises DefinitionError for a
        type that JSON cannot hold or that cannot be checked in bounded time.
        """
        refuse_unusable(types.core_schema, "parameter" if root else "field")
        return cls(types, json_schema, root, is_plain_to_read(types.core_schema), nullable)

    def read(self, raw: Mapping[str, Any]) -> Any:
        """Return the value of `raw`, which is JSON data. Raises InvalidValue."""
        text = self._encode(raw)
        if self.is_plain and len(text) <= self._short_input:
            try:
                return self.types.validate_json(text, strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                if not re.search(_WHOLE_FLOAT, text):
                    raise _invalid_value(error, self.root) from None
        self._check(raw, text)
        return self._typed_value(self._validator, text)

    def without_empty(self, raw: Mapping[str, Any], optional: Collection[str]) -> Mapping[str, Any]:
        """Return `raw` without those `optional` members that are null or "" and that the schema refuses.

        Clients send them for what was left out. Where the schema accepts them, they are values.
        """
        if None not in raw.values() and "" not in raw.values():
            return raw
        empty = {name for name, member in raw.items() if member in (None, "") and name in optional}
        empty -= {name for name in self.nullable if raw.get(name, "") is None}
        return self.schema_validator.without_refused(raw, empty) if empty else raw

    def read_strings(self, raw: Mapping[str, str]) -> Any:
        """Return the value of `raw`, whose strings may stand for numbers. Raises InvalidValue."""
        text = self._encode(raw)
        if patterns := self._own_patterns | self._advertised_patterns:
            from mcp_roundtrip.schema.patterns import TEXT_TOO_LONG, exceeds_matching  # few types have some

            if exceeds_matching(patterns, 0, raw, len(text)):
                raise self._refusal(TEXT_TOO_LONG)
        return self._typed_value(self._string_validator, text)

    def _encode(self, raw: Mapping[str, Any]) -> str:
        try:
            return input_text(raw)
        except ValueError as error:
            raise self._refusal(str(error)) from None

    def _refusal(self, problem: str) -> InvalidValue:
        """Return the error for the whole input."""
        from mcp_roundtrip.schema.problem_texts import format_location  # for errors only

        return InvalidValue(f"{format_location(self.root, ())}: {problem}")

    def _check(self, raw: Mapping[str, Any], text: str) -> None:
        """Raise InvalidValue for what the JSON Schema refuses."""
        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        if problem := self.schema_validator.exceeded_bound(value, len(text), self._own_patterns):
            raise self._refusal(problem)
        if not self.schema_validator.is_valid(value):
            from mcp_roundtrip.schema.explanation import problem_lines  # for errors only

            raise InvalidValue("\n".join(problem_lines(self.schema_validator, value, self.root)))

    @cached_property
    def _short_input(self) -> int:
        parts = list(nodes(self.types.core_schema))
        errors = [max(len(each.get(name, ())) for each in parts) for name in ("fields", "choices")]
        return SHORT_INPUT * _NARROW // max(_NARROW, errors[0] * max(1, errors[1]))

    @cached_property
    def _own_patterns(self) -> frozenset[str]:
        """The patterns of the type. The JSON Schema has others, such as that of a Decimal."""
        return frozenset(node["pattern"] for node in nodes(self.types.core_schema) if "pattern" in node)

    @cached_property
    def _advertised_patterns(self) -> frozenset[str]:
        from mcp_roundtrip.schema.subschemas import all_patterns  # as above

        return all_patterns(self.json_schema())

    @cached_property
    def schema_validator(self) -> SchemaValidator:
        """The validator of the JSON Schema."""
        from mcp_roundtrip.schema.schema_validator import SchemaValidator  # plain types do not need it

        return SchemaValidator.compile(self.json_schema(), "inputSchema")

    @cached_property
    def _validator(self) -> PydanticValidator:
        from mcp_roundtrip.schema.typed_validator import typed_validator  # plain types do not need it

        return typed_validator(self.types.core_schema, patterns=self._advertised_patterns)

    @cached_property
    def _string_validator(self) -> PydanticValidator:
        from mcp_roundtrip.schema.typed_validator import typed_validator  # most calls do not need it

        return typed_validator(self.types.core_schema)

    def _typed_value(self, validator: PydanticValidator, text: str) -> Any:
        """Return the value of JSON that the JSON Schema accepts. Raises InvalidValue.

        Strict mode comes first, so that a union takes the alternative that needs no conversion. Lax mode
        reads a date from the str that a BeforeValidator returns. It is of no use if only the author's
        validators refuse a value.
        """
        from mcp_roundtrip.schema.typed_validator import TooMuchWork, read_json  # plain types do not need it

        try:
            try:
                return read_json(validator, text, strict=True)
            except ValidationError as error:
                if {each["type"] for each in error.errors()} <= {"value_error", "assertion_error"}:
                    raise
            return read_json(validator, text, strict=False)
        except ValidationError as error:
            raise _invalid_value(error, self.root) from None
        except TooMuchWork:
            problem = "Input has too many values for its alternatives; send fewer"
            raise self._refusal(problem) from None


def input_text(raw: Mapping[str, Any]) -> str:
    """Return an object as JSON text. Raises ValueError with a reason, also for half of a surrogate pair."""
    try:
        text = compact_json(dict(raw))
    except (TypeError, ValueError):
        raise ValueError("Input should be JSON") from None
    if r"\ud" in text and has_half_of_a_pair(json.dumps(raw, ensure_ascii=False)):
        raise ValueError("a string holds half of a surrogate pair")
    return text


def _invalid_value(error: ValidationError, root: str) -> InvalidValue:
    from mcp_roundtrip.schema.problem_texts import describe_errors  # for errors only

    return InvalidValue(describe_errors(error, root), lambda: describe_errors(error, root, for_log=True))
