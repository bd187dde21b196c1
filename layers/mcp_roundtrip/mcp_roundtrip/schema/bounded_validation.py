"""Validation in bounded memory and time, for every input.

pydantic collects every error, about 500 bytes each: a list of models has as many errors as items, times the
fields of the model. Inputs longer than `SHORT_INPUT` are therefore validated by a copy of the core schema
that stops at the first invalid item (see `long_inputs`). Types that take exponential time or run a client's
text are refused when the validator is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from mcp_roundtrip.canonical import MAX_DEPTH
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.core_schemas import (
    CoreSchema,
    children,
    definitions_of,
    name_of_type,
    nodes,
    reachable_definitions,
    recursive_types,
    validator_of,
)

SHORT_INPUT: Final = 16_384
"""The longest input, in characters, for which all errors are collected. 30 fields then take 80 MB at most."""

MAX_COPIED_CHARACTERS: Final = 2_500_000
"""Characters of input that pydantic's errors may copy; small values take up to 40 bytes per character."""

_JSON_KIND: Final = {
    **dict.fromkeys(("list", "set", "frozenset", "tuple", "deque", "generator"), "array"),
    **dict.fromkeys(("model", "typed-dict", "dataclass", "dict"), "object"),
}
"""Types of core schemas that accept JSON arrays or objects."""

_FIELDS: Final = frozenset({"model-field", "typed-dict-field", "dataclass-field"})

_PATTERN_COMPILERS: Final = frozenset(
    {"pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator"}
)
"""pydantic's functions that compile a text from the client."""

T = TypeVar("T")


class UnboundedType(DefinitionError):
    """A type whose validation may take too long for an input of any length."""


def bound_validator(types: TypeAdapter[T]) -> TypeAdapter[T]:
    """Replace the validator of `types` by one that reads JSON in bounded memory and time; return `types`.

    Raises UnboundedType for a pattern that backtracks or is too large for its text, for `re.Pattern` and
    `ImportString`, and for a recursive union whose members cannot be distinguished.
    """
    schema: Any = types.core_schema
    _refuse_ambiguous_unions(schema)
    _refuse_patterns(schema, is_python_re=False)
    short = min(SHORT_INPUT, _affordable_length(schema))
    validator = types.validator
    if any(node["type"] == "union" for node in nodes(schema)):
        from mcp_roundtrip.schema.booleans import distinguish_booleans  # many types have no union

        schema = distinguish_booleans(schema)
        validator = validator_of(schema)
    types.validator = _BoundedValidator(validator, schema, short)  # type: ignore[assignment]  # same methods
    return types


def text_copies(schema: CoreSchema) -> int:
    """Return how often pydantic's errors copy a JSON text at most.

    The error for a missing member keeps the whole object: one copy for each field of a type, and for each
    level of a recursive type.
    """
    fields = sum(node["type"] in _FIELDS for node in nodes(schema))
    return fields * MAX_DEPTH if recursive_types(schema) else fields


class _BoundedValidator:
    """A SchemaValidator whose `validate_json` is bounded."""

    def __init__(self, validator: Any, schema: CoreSchema, short: int) -> None:
        self._validator = validator
        self._schema = schema
        self._short = short

    def __getattr__(self, name: str) -> Any:
        return getattr(self._validator, name)

    def validate_json(self, data: str | bytes | bytearray, /, **options: Any) -> Any:
        if len(data) <= self._short:
            return self._validator.validate_json(data, **options)
        from mcp_roundtrip.schema.long_inputs import input_budget  # most inputs are small

        with input_budget():
            return self._fail_fast.validate_json(data, **options)

    @cached_property
    def _fail_fast(self) -> Any:
        from mcp_roundtrip.schema.long_inputs import fail_fast_validator  # as above

        return fail_fast_validator(self._schema, recursive_types(self._schema)) or self._validator


def _affordable_length(schema: CoreSchema) -> int:
    """Return how long a JSON text may be if each of its strings is matched with each pattern."""
    patterns = [node["pattern"] for node in nodes(schema) if node["type"] == "str" and "pattern" in node]
    if not patterns:
        return SHORT_INPUT
    from mcp_roundtrip.schema.patterns import affordable_length  # few types have patterns

    return affordable_length(patterns)


# -- refused types --------------------------------------------------------------------------------------


def _refuse_ambiguous_unions(schema: CoreSchema) -> None:
    definitions = definitions_of(schema)
    for ref, definition in definitions.items():
        for node in nodes(definition):
            if node["type"] == "union":
                _refuse_ambiguous_union(node, ref, definitions)


def _refuse_ambiguous_union(union: CoreSchema, ref: str, definitions: Mapping[str, CoreSchema]) -> None:
    # pydantic tries each choice, and within it each choice of the level below: 2 ** levels in all.
    kinds: list[str] = []
    for choice in _choices(union, definitions):
        if ref in reachable_definitions(choice, definitions) or choice.get("ref") == ref:
            kinds += [_JSON_KIND[choice["type"]]] if choice["type"] in _JSON_KIND else []
    for kind in ("object", "array"):
        if kinds.count(kind) > 1:
            name = name_of_type(definitions[ref])
            raise UnboundedType(
                f"{name}: several members of a union in it are JSON {kind}s that may hold {name} again, and "
                "checking them takes exponential time; give each a Literal field, and name that field in "
                "Field(discriminator=...)"
            )


def _refuse_patterns(schema: CoreSchema, *, is_python_re: bool) -> None:
    engine = (schema.get("config") or {}).get("regex_engine")
    is_python_re = engine == "python-re" if engine else is_python_re
    if schema["type"] == "str" and (pattern := schema.get("pattern")):
        _refuse_pattern(pattern, schema.get("max_length"), is_python_re)
    function = schema.get("function")  # the function itself in a call schema: NamedTuple in older pydantic
    name = getattr(function.get("function"), "__name__", "") if isinstance(function, dict) else ""
    if name in _PATTERN_COMPILERS:
        raise UnboundedType("re.Pattern would run what a client sends as a pattern; take a str instead")
    if name == "import_string":
        raise UnboundedType("ImportString would import what a client names; take a Literal of names instead")
    for child in children(schema):
        _refuse_patterns(child, is_python_re=is_python_re)


def _refuse_pattern(pattern: str | re.Pattern[str], max_length: int | None, is_python_re: bool) -> None:
    if isinstance(pattern, re.Pattern) or is_python_re:
        text = pattern if isinstance(pattern, str) else pattern.pattern
        raise UnboundedType(
            f"the pattern {text!r} runs on Python's re, which can take exponential time for a client's text; "
            'write Field(pattern="...") without re.compile and without regex_engine="python-re", and check '
            "what needs look-around or back-references in the function"
        )
    from mcp_roundtrip.schema.patterns import pattern_problem, size_problem  # few types have patterns

    if problem := pattern_problem(pattern) or size_problem(pattern, max_length, "max_length="):
        raise UnboundedType(f"the pattern {pattern!r} {problem}")


def _choices(schema: CoreSchema, definitions: Mapping[str, CoreSchema]) -> Iterator[CoreSchema]:
    """Yield the members of a union, without the schemas that wrap them."""
    if schema["type"] == "union":
        for choice in schema["choices"]:
            yield from _choices(choice[0] if isinstance(choice, tuple) else choice, definitions)
    elif schema["type"] == "definition-ref":
        yield from _choices(definitions[schema["schema_ref"]], definitions)
    elif schema["type"] not in _JSON_KIND and isinstance(schema.get("schema"), dict):
        yield from _choices(schema["schema"], definitions)
    else:
        yield schema
