"""Validation of JSON data by a JSON Schema: jsonschema-rs decides, in linear time.

Errors are those of a copy of the schema, in which each group of alternatives is one check without errors of
its own: those of alternatives within alternatives would take exponential time. `explain_invalid_json` asks
for the errors within, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, Final, Self

import jsonschema_rs
from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import format_location
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.schema.pattern_checks import BASE64
from mcp_roundtrip.schema.subschemas import DIALECTS, dialect_of, escaped, resolve, subschemas
from mcp_roundtrip.schema.validation_cost import CHECKS, SchemaCosts, copied_size


class CompiledSchema(Struct, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """A compiled JSON Schema. Do not change `schema`."""

    schema: Mapping[str, Any]
    whole: jsonschema_rs.Validator

    @classmethod
    def compile(cls, schema: Mapping[str, Any], name: str = "schema") -> Self:
        """Compile a schema, in messages `name`, with formats asserted. Raises DefinitionError."""
        try:
            return cls(schema, _compile(schema))
        except jsonschema_rs.ValidationError as error:
            place = format_location(name, error.instance_path)
            if error.kind.name == "$ref":
                problem = f"a $ref leads nowhere: {error.message}; define it under $defs, and leave out $id"
            else:
                problem = f"{error.message}; write what {dialect_of(schema)} allows"
        except ValueError as error:  # a name that is not text, or half of a surrogate pair
            place, problem = name, f"{error}; write JSON"
        raise DefinitionError(f"{place}: {problem}")

    def is_valid(self, value: Any) -> bool:
        """Return whether JSON data is valid. It must not have half of a surrogate pair."""
        return self.whole.is_valid(value)

    def without_refused(self, value: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Leave out each of the named members whose value is refused."""
        parts = {name: self._part(f"#/properties/{escaped(name)}") for name in names}
        refused = {name for name, part in parts.items() if part and not part.is_valid(value[name])}
        return {name: each for name, each in value.items() if name not in refused}

    def errors(self, pointer: str, value: Any) -> list[jsonschema_rs.ValidationError]:
        """Return the errors of JSON data by the subschema of `shallow` at a pointer.

        If there may be many, return only the first: each error has a copy of the invalid part, and of what
        the schema demands.
        """
        validator = self._part(pointer)
        if validator is None:
            return []
        if self.costs.whole[CHECKS] * copied_size(value) * self._error_size <= MAX_ERRORS:
            return list(validator.iter_errors(value))
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error.with_traceback(None)]  # its frames would keep the copies
        return []

    @cached_property
    def costs(self) -> SchemaCosts:
        return SchemaCosts(self.schema)

    @cached_property
    def shallow(self) -> dict[str, Any]:
        """The schema in which `not: {not: ...}` is around alternatives."""
        return _shallow(self.schema)

    @cached_property
    def _error_size(self) -> int:
        """Thousands of bytes of the largest error, without the invalid part: ten for a byte of JSON text."""
        nodes = [*subschemas(self.shallow)]
        operands = (node[name] for node in nodes for name in _IN_ERRORS if name in node)
        return 1 + max((len(compact_json(each)) for each in operands), default=0) // 100

    @cached_property
    def _parts(self) -> dict[str, jsonschema_rs.Validator | None]:
        return {}

    @cached_property
    def _registry(self) -> jsonschema_rs.Registry:
        return jsonschema_rs.Registry([(_SHALLOW, self.shallow)])

    def _part(self, pointer: str) -> jsonschema_rs.Validator | None:
        """Return the validator of a subschema of `shallow`; None if there is no such place."""
        if pointer not in self._parts:
            # jsonschema-rs's own map of places takes 700 MB for a thousand references to as many properties.
            part = {"$schema": dialect_of(self.schema), "$ref": f"{_SHALLOW}{pointer}"}
            try:
                self._parts[pointer] = _compile(part, registry=self._registry, mask="")
            except jsonschema_rs.ValidationError:
                self._parts[pointer] = None
        return self._parts[pointer]


def _compile(schema: Mapping[str, Any], **options: Any) -> jsonschema_rs.Validator:
    dialect: type[jsonschema_rs.Validator] = getattr(jsonschema_rs, DIALECTS[dialect_of(schema)])
    return dialect(
        _with_own_formats(schema),
        # The default engine backtracks. A document of the network is never fetched.
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=True,
        email_options=jsonschema_rs.EmailOptions(allow_display_text=False),
        offline=True,
        **options,
    )


def _with_own_formats(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Replace formats by keywords. For formats in Python, jsonschema-rs takes memory for each member."""
    if not any(str(node.get("format")) in _FORMATS for node in subschemas(schema)):
        return dict(schema)
    copied = deepcopy(dict(schema))
    for node in [*subschemas(copied)]:
        if str(node.get("format")) in _FORMATS:
            node["allOf"] = [*node.get("allOf", ()), _FORMATS[node.pop("format")]]
    return copied


def _shallow(schema: Mapping[str, Any]) -> dict[str, Any]:
    copied = deepcopy(_with_own_formats(schema))
    targets = {str(node.get("$ref")) for node in subschemas(copied)}
    # A reference may lead into alternatives, which are moved.
    moved = {each: resolve(copied, each) for each in targets if re.search("/(any|one)Of/", each)}
    for node in [*subschemas(copied)]:
        if node.get("$ref") in moved:
            node["$ref"] = f"#/$defs/{escaped(node['$ref'])}"
        for keyword in _NOT_EXPLAINED:
            node.pop(keyword, None)
        checks = [{"not": {"not": {keyword: node.pop(keyword)}}} for keyword in _GROUPS if keyword in node]
        if checks:
            node["allOf"] = [*node.get("allOf", ()), *checks]
    return {**copied, "$defs": {**copied.get("$defs", {}), **moved}} if moved else copied


_SHALLOW: Final = "json-schema:///shallow"

MAX_ERRORS: Final = 40_000
"""The most errors that are collected, of 1 KB and a copy of the invalid part each."""

_GROUPS: Final = ("anyOf", "oneOf")
_NOT_EXPLAINED: Final = ("unevaluatedProperties", "unevaluatedItems", "description", "examples", "$id", "id")
"""Keywords that depend on the alternatives beside them, or that no error needs."""

_IN_ERRORS: Final = ("enum", "const", "pattern", "not")
"""Keywords whose operand an error contains."""

_NO_LONG_TEXT: Final = {"maxLength": 10_000}  # 4 MB of "(" take 224 MB to parse
_FORMATS: Final[Mapping[str, Mapping[str, Any]]] = {
    "base64": {"pattern": BASE64},
    "base64url": {"pattern": BASE64},
    "regex": {"if": _NO_LONG_TEXT, "then": {"format": "regex"}, "else": _NO_LONG_TEXT},
}
