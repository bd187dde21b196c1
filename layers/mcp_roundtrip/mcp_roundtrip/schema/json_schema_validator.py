"""Validation of JSON data by a JSON Schema: jsonschema-rs decides, in linear time.

Its own errors are not used. Those of alternatives within alternatives take exponential time, and each error
has a copy of the value (1.5 GB for 300 missing members of an object with 20,000 values). `json_schema_errors`
finds the reasons of a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, Final, Self

import jsonschema_rs
from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.schema.error_texts import EXCLUSIVE, WORDS
from mcp_roundtrip.schema.patterns import MAX_MATCHING, TEXT_TOO_LONG, matching, pattern_size
from mcp_roundtrip.schema.subschemas import DIALECTS, all_patterns, dialect_of, escaped, nodes, patterns_of
from mcp_roundtrip.schema.validation_cost import (
    MAX_COST,
    MAX_WORK,
    TOO_MUCH_WORK,
    has_uncommon_number,
    schema_cost,
    text_lengths,
    value_size,
    weight_of_comparing,
    work_of_pairs,
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

    def exceeded_bound(self, value: Any, other_patterns: frozenset[str] = frozenset()) -> str | None:
        """Return the problem of a client's data that may take more than a second to check, or None.

        `other_patterns` are matched with its texts, too.
        """
        sizes = {**self.patterns, **{each: pattern_size(each) for each in other_patterns}}
        matches = max(1, self._pattern_cost / sum(sizes.values())) if sizes else 0
        if matches * matching(sizes, value) > MAX_MATCHING:
            return TEXT_TOO_LONG
        return TOO_MUCH_WORK if self._checks(value) > MAX_WORK else None

    def without_refused(self, value: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Return an object without those of the named members that the property of their name refuses."""
        return {
            name: each
            for name, each in value.items()
            if name not in names or self.is_valid_by(f"#/properties/{escaped(name)}", each)
        }

    def is_valid_by(self, pointer: str, value: Any) -> bool:
        """Return whether JSON data is valid by the subschema at a JSON pointer, such as ``#/$defs/size``."""
        if pointer not in self._subschemas:
            self._subschemas[pointer] = self._compile_at(pointer)
        validator = self._subschemas[pointer]
        return validator is None or validator.is_valid(value)

    def refused_by(self, pointer: str, schema: Mapping[str, Any], value: Any) -> set[str]:
        """Return those keywords without subschemas, of the subschema at a pointer, that refuse JSON data."""
        if pointer not in self._assertions:
            dialect = {"$schema": dialect_of(self.schema)}
            rules = {keyword: _rule(keyword, schema) for keyword in schema.keys() & _ASSERTIONS}
            self._assertions[pointer] = {
                keyword: _compile({**dialect, **rule}) for keyword, rule in rules.items() if rule
            }
        validators = self._assertions[pointer]
        return {keyword for keyword in validators if not validators[keyword].is_valid(value)}

    def work(self, value: Any) -> int:
        """Return how much work it is at most to explain one refusal, of `MAX_WORK` in a second."""
        texts = sum(text_lengths(value)) if self.patterns else 0
        return self._step + self._checks(value) + self._pattern_cost * texts // _PER_WORK

    def _checks(self, value: Any) -> int:
        is_compared = self._cost < self._cost_of_comparing and has_uncommon_number(value)
        cost = self._cost_of_comparing if is_compared else self._cost
        pairs = self._searches and self._searches * work_of_pairs(value)
        return cost * value_size(value) + pairs

    @cached_property
    def patterns(self) -> Mapping[str, int]:
        """The patterns of the schema, and the size of each when compiled."""
        return {pattern: pattern_size(pattern) for pattern in all_patterns(self.schema)}

    @cached_property
    def _pattern_cost(self) -> int:
        """The size of the compiled patterns that match one text."""
        return schema_cost(self.schema, lambda node: sum(map(pattern_size, patterns_of(node))))

    @cached_property
    def _cost(self) -> int:
        return schema_cost(self.schema)

    @cached_property
    def _cost_of_comparing(self) -> int:
        return schema_cost(self.schema, weight_of_comparing)

    @cached_property
    def _searches(self) -> int:
        """How often one array is searched for equal items. Other checks are fewer than `MAX_COST`."""
        found = schema_cost(self.schema, lambda node: MAX_COST * (node.get("uniqueItems") is True))
        return found // MAX_COST

    @cached_property
    def _step(self) -> int:
        return _STEP + _COMPILING * sum(1 for _ in nodes(self.schema))

    @cached_property
    def _subschemas(self) -> dict[str, jsonschema_rs.Validator | None]:
        return {}

    @cached_property
    def _assertions(self) -> dict[str, dict[str, jsonschema_rs.Validator]]:
        return {}

    @cached_property
    def _registry(self) -> jsonschema_rs.Registry:
        return jsonschema_rs.Registry([(_ROOT, _with_base64(self.schema))])

    def _compile_at(self, pointer: str) -> jsonschema_rs.Validator | None:
        # jsonschema-rs's own map of places takes 700 MB for a thousand references to a thousand properties.
        part = {"$schema": dialect_of(self.schema), "$ref": f"{_ROOT}{pointer}"}
        try:
            return _compile(part, registry=self._registry)
        except jsonschema_rs.ValidationError:
            return None  # there is no such place


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


def _rule(keyword: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a keyword as a schema, in draft 4 with what excludes its limit; nothing for the latter."""
    if keyword in EXCLUSIVE.values() and isinstance(schema[keyword], bool):
        return {}
    strict = EXCLUSIVE.get(keyword, "")
    names = [keyword, strict] if isinstance(schema.get(strict), bool) else [keyword]
    return {each: schema[each] for each in names}


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


_ROOT: Final = "json-schema:///root"
_ASSERTIONS: Final = WORDS.keys() | {"enum", "const"}

_STEP: Final = 1_000
_COMPILING: Final = 10
"""The work for a step of an explanation in Python, and to compile a subschema once for several steps."""

_PER_WORK: Final = MAX_MATCHING // MAX_WORK

_BASE64_FORMATS: Final = ("base64", "base64url")

# pydantic skips what is no Base64: it reads "%%" as no bytes.
_BASE64: Final = "^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2}(==)?|[A-Za-z0-9+/_-]{3}=?)?$"
