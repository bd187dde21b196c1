"""Validation that accepts exactly the JSON that the advertised JSON Schema accepts.

For plain types, pydantic's strict mode decides as the JSON Schema does, so most calls never build one. For
others the JSON Schema decides, and pydantic makes the typed value. `docs/reference/accepted-values.md` lists
the exceptions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator as PydanticValidator

from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.protocol.canonical import compact_json, has_half_of_a_pair, with_exact_integers
from mcp_roundtrip.schema.json_schema_errors import compile_schema, input_problems
from mcp_roundtrip.schema.pydantic_core_schemas import is_plain_to_read, nodes
from mcp_roundtrip.schema.pydantic_validator import invalid_value, read_typed, typed_validator
from mcp_roundtrip.schema.unusable_types import refuse_unusable

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import SchemaValidator

SHORT_INPUT: Final = 4_096
"""The longest input, in characters, of which pydantic collects every error. Each takes up to 1,000 bytes."""


class ExactReader(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """Reads JSON objects. `root` is their name in messages, `json_schema` returns what was advertised.

    Members in `nullable` may be null even if the JSON Schema refuses null.
    """

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

        Raises DefinitionError for a type that JSON cannot hold or that cannot be checked in bounded time.
        """
        refuse_unusable(types.core_schema, "parameter" if root else "field")
        return cls(types, json_schema, root, is_plain_to_read(types.core_schema), nullable)

    def read(self, raw: Mapping[str, Any]) -> Any:
        """Return the value of `raw`, which is JSON data. Raises InvalidValue."""
        text = input_text(raw, self.root)
        if self.is_plain and len(text) <= SHORT_INPUT:
            try:
                return self.types.validate_json(text, strict=True, by_alias=True, by_name=False)
            except ValidationError as error:
                raise invalid_value(error, self.root) from None
        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        if problems := input_problems(self.validator, value, self.root, self._patterns):
            raise InvalidValue("\n".join(problems))
        return read_typed(self._typed_validator, text, self.root)

    def without_empty(self, raw: Mapping[str, Any], optional: Collection[str]) -> Mapping[str, Any]:
        """Return `raw` without those `optional` members that are null or "" and that the schema refuses.

        Clients send them for what was left out. Where the schema accepts them, they are values.
        """
        if None not in raw.values() and "" not in raw.values():
            return raw
        empty = {name for name, member in raw.items() if member in (None, "") and name in optional}
        empty -= {name for name in self.nullable if raw.get(name, "") is None}
        return self.validator.without_refused(raw, empty) if empty else raw

    @cached_property
    def validator(self) -> SchemaValidator:
        """The validator by the JSON Schema."""
        return compile_schema(self.json_schema(), "inputSchema")

    @cached_property
    def _typed_validator(self) -> PydanticValidator:
        return typed_validator(self.types.core_schema, self.validator.patterns)

    @cached_property
    def _patterns(self) -> frozenset[str]:
        """The patterns of the type. The JSON Schema has others, such as that of a Decimal."""
        return frozenset(node["pattern"] for node in nodes(self.types.core_schema) if "pattern" in node)


def input_text(raw: Mapping[str, Any], root: str) -> str:
    """Return an object as JSON text, in which 2.0 is 2: a JSON Schema does not tell them apart.

    Raises InvalidValue, also for half of a surrogate pair.
    """
    try:
        text = compact_json(dict(raw))
        if ".0" in text or "e+" in text:
            text = compact_json(with_exact_integers(dict(raw)))
    except (TypeError, ValueError):
        raise InvalidValue(f"{format_location(root, ())}: Input should be JSON") from None
    if r"\ud" in text and has_half_of_a_pair(json.dumps(raw, ensure_ascii=False)):
        raise InvalidValue(f"{format_location(root, ())}: a string holds half of a surrogate pair")
    return text
