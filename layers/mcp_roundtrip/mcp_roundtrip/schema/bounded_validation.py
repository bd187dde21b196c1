"""Validation whose memory and time are bounded by the input's length, whatever is wrong with the input.

pydantic keeps every error, some 500 bytes each, and a list of models has as many as it has items, times
the model's fields. Inputs longer than `SMALL` are therefore validated by a copy of the schema that stops at
the first wrong item or member, and says of a value of a recursive type only that it is wrong. What would
take exponential time is refused when the type is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

from mcp_roundtrip.canonical import MAX_DEPTH
from mcp_roundtrip.errors import DefinitionError

SMALL: Final = 16_384
"""Characters up to which everything that is wrong is listed: for a model of 30 fields that takes 80 MB."""

MAX_COPIED: Final = 2_500_000
"""Characters of copies that pydantic's errors may hold; small values take up to 40 bytes for each."""

_CONTAINERS: Final = frozenset({"list", "set", "frozenset", "tuple", "dict"})

_KINDS: Final = {
    **dict.fromkeys(("list", "set", "frozenset", "tuple", "deque", "generator"), "array"),
    **dict.fromkeys(("model", "typed-dict", "dataclass", "dict"), "object"),
}
"""Types of core schemas that accept JSON arrays or objects."""

_FIELDS: Final = frozenset({"model-field", "typed-dict-field", "dataclass-field"})

_OPAQUE: Final = frozenset(
    {"metadata", "serialization", "config", "default", "expected", "members", "computed_fields", "function"}
)
"""Members of core schemas that hold no schemas to validate by."""

_NAMED: Final = frozenset({"fields", "choices"})
"""Members of core schemas whose own members have names of the author's choice."""

T = TypeVar("T")


class Unbounded(DefinitionError):
    """Validating a type may take more time than any limit on the input can bound."""


def bounded(types: TypeAdapter[T]) -> TypeAdapter[T]:
    """`types`, from now on with bounded validation of JSON.

    Raises Unbounded for a pattern that backtracks or is too large for its text, for `re.Pattern`, and for a
    recursive union whose members cannot be told apart.
    """
    schema: Any = types.core_schema
    _refuse_unbounded(schema)
    small = min(SMALL, _affordable_length(schema))
    types.validator = _Bounded(types.validator, schema, small)  # type: ignore[assignment]  # used as one
    return types


def copies(schema: Mapping[str, Any]) -> int:
    """How often pydantic copies a JSON text at most, to say what is wrong with it.

    It keeps the whole object with each member that is missing: one copy for each field of a type, and for
    each level of a recursive one.
    """
    fields = sum(node["type"] in _FIELDS for node in _nodes(schema))
    return fields * MAX_DEPTH if _recursive(schema) else fields


def _recursive(schema: Mapping[str, Any]) -> dict[str, str]:
    """The definitions that use themselves, and what they are called."""
    definitions = _definitions(schema)
    found = (ref for ref in definitions if ref in _reachable(definitions[ref], definitions))
    return {ref: _name(definitions[ref]) for ref in found}


def _affordable_length(schema: Mapping[str, Any]) -> int:
    """How long a JSON text may be whose strings are matched with all patterns."""
    patterns = [node["pattern"] for node in _nodes(schema) if node["type"] == "str" and "pattern" in node]
    if not patterns:
        return SMALL
    from mcp_roundtrip.schema.patterns import affordable_length  # few types have patterns

    return affordable_length(patterns)


class _Bounded:
    """Takes the place of pydantic's validator in a TypeAdapter."""

    def __init__(self, validator: Any, schema: Mapping[str, Any], small: int) -> None:
        self._validator = validator
        self._schema = schema
        self._small = small

    def __getattr__(self, name: str) -> Any:
        return getattr(self._validator, name)

    def validate_json(self, data: str | bytes | bytearray, /, **options: Any) -> Any:
        if len(data) <= self._small:
            return self._validator.validate_json(data, **options)
        from mcp_roundtrip.schema.long_inputs import counted  # most inputs are small

        with counted():
            return self._fail_fast.validate_json(data, **options)

    @cached_property
    def _fail_fast(self) -> Any:
        changed = _fail_fast(self._schema, _recursive(self._schema))
        if changed == self._schema:
            return self._validator
        # A model's own validator would collect all errors again.
        try:
            return SchemaValidator(changed, _use_prebuilt=False)
        except TypeError:  # an older pydantic does not know the argument
            return SchemaValidator(changed)


def _fail_fast(schema: Any, recursive: Mapping[str, str]) -> Any:
    """A copy with `limits`, in which containers stop at the first error and recursion has one at most."""
    from mcp_roundtrip.schema.long_inputs import limited  # most inputs are small

    if isinstance(schema, (list, tuple)):
        return type(schema)(_fail_fast(each, recursive) for each in schema)
    if not isinstance(schema, dict):
        return schema
    copy = {
        name: value
        if name in _OPAQUE
        else {own: _fail_fast(each, recursive) for own, each in value.items()}
        if name in _NAMED and isinstance(value, dict)
        else _fail_fast(value, recursive)
        for name, value in schema.items()
    }
    if copy.get("type") in _CONTAINERS:
        copy["fail_fast"] = True
    if copy.get("type") == "definition-ref" and (name := recursive.get(schema["schema_ref"])):
        message = f"Input should be a valid {name}; a smaller request lists what is wrong in it"
        return {
            "type": "custom-error",
            "schema": copy,
            "custom_error_type": "too_large_to_explain",
            "custom_error_message": message.replace("{", "{{").replace("}", "}}"),
        }
    return limited(copy)


def _children(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas in a schema."""
    for name, value in schema.items():
        if name in _OPAQUE:
            continue
        named = name in _NAMED and isinstance(value, dict)
        for each in value.values() if named else value if isinstance(value, list) else (value,):
            each = each[0] if isinstance(each, tuple) else each  # a union's choice with its label
            if isinstance(each, dict) and isinstance(each.get("type"), str):
                yield each


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and all in it."""
    waiting = [schema]
    while waiting:
        waiting += _children(node := waiting.pop())
        yield node


def _definitions(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {each["ref"]: each for each in schema.get("definitions", ()) if "ref" in each}


def _references(schema: Mapping[str, Any]) -> set[str]:
    return {node["schema_ref"] for node in _nodes(schema) if node["type"] == "definition-ref"}


def _reachable(schema: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The definitions that a schema uses, directly or not."""
    found: set[str] = set()
    waiting = _references(schema)
    while waiting := waiting - found:
        found |= waiting
        waiting = {ref for each in waiting for ref in _references(definitions[each])}
    return found


def _name(schema: Mapping[str, Any]) -> str:
    return getattr(schema.get("cls"), "__name__", None) or str(schema["ref"]).partition(":")[0]


# -- what is refused ----------------------------------------------------------------------------------


def _refuse_unbounded(schema: Mapping[str, Any]) -> None:
    definitions = _definitions(schema)
    for ref, definition in definitions.items():
        for node in _nodes(definition):
            if node["type"] == "union":
                _refuse_ambiguous(node, ref, definitions)
    _refuse_patterns(schema, python=False)


def _refuse_ambiguous(
    union: Mapping[str, Any], ref: str, definitions: Mapping[str, Mapping[str, Any]]
) -> None:
    """pydantic tries each choice, and within each the choices below: twice as many with every level."""
    kinds: list[str] = []
    for choice in _choices(union, definitions):
        if ref in _reachable(choice, definitions) or choice.get("ref") == ref:
            kinds += [_KINDS[choice["type"]]] if choice["type"] in _KINDS else []
    for kind in ("object", "array"):
        if kinds.count(kind) > 1:
            name = _name(definitions[ref])
            raise Unbounded(
                f"{name}: several members of a union in it are JSON {kind}s that may hold {name} again, and "
                "checking them takes exponential time; give each a Literal field, and name that field in "
                "Field(discriminator=...)"
            )


def _choices(
    schema: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """A union's alternatives, without what is written around them."""
    if schema["type"] == "union":
        for choice in schema["choices"]:
            yield from _choices(choice[0] if isinstance(choice, tuple) else choice, definitions)
    elif schema["type"] == "definition-ref":
        yield from _choices(definitions[schema["schema_ref"]], definitions)
    elif schema["type"] not in _KINDS and isinstance(schema.get("schema"), dict):
        yield from _choices(schema["schema"], definitions)
    else:
        yield schema


def _refuse_patterns(schema: Mapping[str, Any], *, python: bool) -> None:
    engine = (schema.get("config") or {}).get("regex_engine")
    python = engine == "python-re" if engine else python
    pattern = schema.get("pattern") if schema["type"] == "str" else None
    if isinstance(pattern, re.Pattern) or (pattern and python):
        text = pattern if isinstance(pattern, str) else pattern.pattern
        raise Unbounded(
            f"the pattern {text!r} runs on Python's re, which can take exponential time for a client's text; "
            'write Field(pattern="...") without re.compile and without regex_engine="python-re", and check '
            "what needs look-around or back-references in the function"
        )
    if pattern:
        from mcp_roundtrip.schema.patterns import size_problem  # few types have patterns

        if problem := size_problem(pattern, schema.get("max_length"), "max_length="):
            raise Unbounded(f"the pattern {pattern!r} {problem}")
    function = schema.get("function")  # of a call, it is the function itself: older pydantic's NamedTuple
    name = getattr(function.get("function"), "__name__", "") if isinstance(function, dict) else ""
    if name in _COMPILERS:
        raise Unbounded("re.Pattern would run what a client sends as a pattern; take a str instead")
    if name == "import_string":
        raise Unbounded("ImportString would import what a client names; take a Literal of names instead")
    for child in _children(schema):
        _refuse_patterns(child, python=python)


_COMPILERS: Final = frozenset(
    {"pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator"}
)
