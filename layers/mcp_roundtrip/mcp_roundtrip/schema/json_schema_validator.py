"""Validation of JSON data by a JSON Schema: jsonschema-rs decides, in linear time.

Its own errors are not used. Those of alternatives within alternatives take exponential time, each error has a
copy of the value (1.5 GB for 300 missing members of an object with 20,000 values), and their paths have the
member "01" as 1. `json_schema_errors` finds the reasons of a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import cached_property
from itertools import islice
from typing import Any, Final, Self

import jsonschema_rs
from msgspec import Struct
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaValidator as PydanticValidator

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.protocol.canonical import count_json_values, parse_json
from mcp_roundtrip.schema.json_schema import JsonSchemaGenerator
from mcp_roundtrip.schema.json_schema_errors import ValuePath, explain, problem_lines
from mcp_roundtrip.schema.patterns import (
    MAX_MATCHING,
    TEXT_TOO_LONG,
    applied_size,
    exceeds_matching,
    text_length,
)
from mcp_roundtrip.schema.pydantic_core_schemas import CoreSchema
from mcp_roundtrip.schema.pydantic_core_schemas import nodes as core_nodes
from mcp_roundtrip.schema.pydantic_validator import read_typed, typed_validator
from mcp_roundtrip.schema.subschemas import DIALECTS, all_patterns, dialect_of, escaped, nodes
from mcp_roundtrip.schema.validation_cost import (
    MAX_WORK,
    TOO_MUCH_WORK,
    schema_cost,
    uncommon_weight,
    value_size,
)


class SchemaValidator(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """A compiled JSON Schema. Do not change `schema`."""

    schema: Mapping[str, Any]
    whole: jsonschema_rs.Validator

    @classmethod
    def compile(cls, schema: Mapping[str, Any], name: str = "schema") -> Self:
        """Compile a schema of one of `DIALECTS`, with formats asserted. `name` is its name in messages.

        Raises DefinitionError for what the dialect does not allow, and for a `$ref` to nothing.
        """
        try:
            return cls(schema, _compile(schema))
        except jsonschema_rs.ValidationError as error:
            place = format_location(name, error.instance_path)
            if error.kind.name == "$ref":
                problem = f"a $ref leads nowhere: {error.message}; define it under $defs"
            else:
                problem = f"{error.message}; write what {dialect_of(schema)} allows"
            raise DefinitionError(f"{place}: {problem}") from None

    def is_valid(self, value: Any) -> bool:
        """Return whether JSON data is valid. Its text is Unicode (see `input_text`)."""
        return self.whole.is_valid(value)

    def problems(
        self, value: Any, root: str, length: int = 0, other_patterns: frozenset[str] = frozenset()
    ) -> list[str]:
        """Return a line for each problem of JSON data with the name `root`; none for valid data.

        `length` is that of the data as JSON text. If it is given, data that may take more than a second to
        check is refused; `other_patterns` are matched with its texts, too.
        """
        if length and (problem := self._exceeded_bound(value, length, other_patterns)):
            return [f"{format_location(root, ())}: {problem}"]
        return [] if self.is_valid(value) else problem_lines(self, value, root)

    def with_parsed_json(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an invalid object with JSON data in place of texts that hold it and that the schema refuses.

        A text that holds a text, or no JSON, stays. The result may be invalid.
        """
        values_left = MAX_PARSED_VALUES
        for _ in range(_PASSES):
            paths = [path for path, _ in islice(explain(self, value), MAX_CONVERSIONS)]
            changed = deepcopy(dict(value))
            before = values_left
            for path in paths:
                values_left -= _parse_at(changed, path, values_left)
            if values_left == before:
                break
            value = changed
        return value

    def is_valid_by(self, pointer: str, value: Any) -> bool:
        """Return whether JSON data is valid by the subschema at a JSON pointer, such as ``#/$defs/size``."""
        if pointer not in self._compiled:
            self._compiled[pointer] = self._compile_part(pointer)
        return self._is_valid_at(pointer, value)

    def satisfies(self, place: str, rule: Mapping[str, Any], value: Any) -> bool:
        """Return whether JSON data is valid by keywords that refer to no place. `place` is their key."""
        if place not in self._compiled:
            dialect = {"$schema": dialect_of(self.schema)}
            self._compiled[place] = _compile({**dialect, **rule})
        return self._is_valid_at(place, value)

    def without_refused(self, value: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Return an object without those of the named members that the property of their name refuses."""
        return {
            name: each
            for name, each in value.items()
            if name not in names or self.is_valid_by(f"#/properties/{escaped(name)}", each)
        }

    def _exceeded_bound(self, value: Any, length: int, other_patterns: frozenset[str]) -> str | None:
        patterns = self.patterns | other_patterns
        if patterns and exceeds_matching(patterns, self.pattern_size, value, length):
            return TEXT_TOO_LONG
        return TOO_MUCH_WORK if self._work(value) > MAX_WORK else None

    def work(self, place: str, value: Any) -> int:
        """Return how much work it is at most to check JSON data at a place, of `MAX_WORK` in a second."""
        compiling = 0 if place in self._compiled else self._work_of_compiling
        matching = self.pattern_size and self.pattern_size * text_length(value) // _MATCHING_PER_WORK
        return _STEP + compiling + matching + self._work(value)

    def _is_valid_at(self, place: str, value: Any) -> bool:
        part = self._compiled[place]
        return part is None or part.is_valid(value)

    @cached_property
    def pattern_size(self) -> int:
        """The size of the compiled patterns that match one text."""
        return applied_size(self.schema) if self.patterns else 0

    @cached_property
    def patterns(self) -> frozenset[str]:
        """The patterns of the schema."""
        return all_patterns(self.schema)

    def _work(self, value: Any) -> int:
        size, uncommon = value_size(value)
        return self._cost * size + (uncommon and self._uncommon_cost * uncommon)

    @cached_property
    def _cost(self) -> int:
        return schema_cost(self.schema)

    @cached_property
    def _uncommon_cost(self) -> int:
        return schema_cost(self.schema, uncommon_weight)

    @cached_property
    def _work_of_compiling(self) -> int:
        return _COMPILING * sum(1 for _ in nodes(self.schema))

    @cached_property
    def _compiled(self) -> dict[str, jsonschema_rs.Validator | None]:
        return {}

    @cached_property
    def _registry(self) -> jsonschema_rs.Registry:
        return jsonschema_rs.Registry([(_ROOT, _with_base64(self.schema))])

    def _compile_part(self, pointer: str) -> jsonschema_rs.Validator | None:
        # jsonschema-rs's own map of places takes 700 MB for a thousand references to a thousand properties.
        part = {"$schema": dialect_of(self.schema), "$ref": f"{_ROOT}{pointer}"}
        try:
            return _compile(part, registry=self._registry)
        except jsonschema_rs.ValidationError:
            return None  # there is no such place


def _parse_at(value: Any, path: ValuePath, limit: int) -> int:
    """Replace the text at a path by the JSON data in it. Return how many values it has, at most `limit`."""
    if not path:
        return 0
    for step in path[:-1]:
        value = value[step]
    try:
        text = value[path[-1]]
        parsed = parse_json(text, max_values=limit) if isinstance(text, str) else None
    except (KeyError, ValueError):  # a missing member; text that holds no JSON
        return 0
    if not isinstance(text, str) or isinstance(parsed, str):
        return 0
    value[path[-1]] = parsed
    return count_json_values(text, limit)


def _compile(schema: Mapping[str, Any], **options: Any) -> jsonschema_rs.Validator:
    dialect: type[jsonschema_rs.Validator] = getattr(jsonschema_rs, DIALECTS[dialect_of(schema)])
    return dialect(
        _with_base64(schema),
        # The default engine backtracks. A document of the network is never fetched.
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=True,
        offline=True,
        **options,
    )


def _with_base64(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with a pattern beside pydantic's formats, which jsonschema-rs does not know.

    With a format in Python, jsonschema-rs takes memory for each member that it checks.
    """
    if not any(node.get("format") in _BASE64_FORMATS for node in nodes(schema)):
        return dict(schema)
    copied = deepcopy(dict(schema))
    for node in nodes(copied):
        if node.get("format") in _BASE64_FORMATS:
            node["allOf"] = [*node.get("allOf", ()), {"pattern": _BASE64}]
    return copied


MAX_CONVERSIONS: Final = 1_000
MAX_PARSED_VALUES: Final = 20_000

_PASSES: Final = 3
"""JSON in JSON text: a model may write an object as text whose members are text again."""

_ROOT: Final = "json-schema:///root"
_STEP: Final = 1_000
"""The work for a step of an explanation in Python."""

_COMPILING: Final = 100
"""The work to compile a subschema."""

_MATCHING_PER_WORK: Final = MAX_MATCHING // MAX_WORK

_BASE64_FORMATS: Final = ("base64", "base64url")

# pydantic skips what is no Base64: it reads "%%" as no bytes.
_BASE64: Final = "^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2}(==)?|[A-Za-z0-9+/_-]{3}=?)?$"


class CheckedReader(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The counterpart of `ExactReader`, whose fields have the same meaning, for all types and inputs."""

    core_schema: CoreSchema
    validator: SchemaValidator
    root: str
    nullable: frozenset[str]

    @classmethod
    def compile(
        cls, core_schema: CoreSchema, json_schema: Mapping[str, Any], root: str, nullable: frozenset[str]
    ) -> Self:
        return cls(core_schema, SchemaValidator.compile(json_schema, "inputSchema"), root, nullable)

    def read(self, raw: Mapping[str, Any], text: str) -> Any:
        """Return the value of `raw`, whose JSON text is `text`. Raises InvalidValue."""
        value = {name: each for name, each in raw.items() if each is not None or name not in self.nullable}
        if problems := self.validator.problems(value, self.root, len(text), self._own_patterns):
            raise InvalidValue("\n".join(problems))
        return read_typed(self._typed_validator, text, self.root)

    @cached_property
    def _own_patterns(self) -> frozenset[str]:
        """The patterns of the type. The JSON Schema has others, such as that of a Decimal."""
        return frozenset(node["pattern"] for node in core_nodes(self.core_schema) if "pattern" in node)

    @cached_property
    def _typed_validator(self) -> PydanticValidator:
        return typed_validator(self.core_schema, self.validator.patterns, _compile_choice)


def _compile_choice(schema: CoreSchema) -> SchemaValidator | None:
    """Return the validator of a choice of a union; None if the JSON Schema of the union is the author's."""
    made: Any = schema
    try:
        return SchemaValidator.compile(JsonSchemaGenerator().generate(made))
    except PydanticUserError:
        return None
