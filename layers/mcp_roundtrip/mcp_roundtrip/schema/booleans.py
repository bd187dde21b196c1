"""Unions in which a boolean equals no number, as in JSON Schema (core, 4.2.2).

To pydantic, as to Python, `True` equals 1. In a union it therefore takes a boolean for a number, and a number
for a boolean, although the JSON Schema of the other alternative accepts the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from mcp_roundtrip.schema.core_schemas import transform


def distinguish_booleans(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a core schema whose unions distinguish booleans and numbers."""
    changed: Mapping[str, Any] = transform(schema, _distinguish)
    return changed


def _distinguish(copy: dict[str, Any]) -> dict[str, Any]:
    # `strict` would do it for booleans, but the argument of a validation takes precedence over it.
    expected: tuple[Any, ...] = (True, False) if copy.get("type") == "bool" else ()
    if copy.get("type") == "literal" and any(isinstance(each, int) for each in copy["expected"]):
        expected = tuple(copy["expected"])
    if not expected:
        return copy
    check = partial(_refuse_equal, expected)
    return {**core_schema.no_info_before_validator_function(check, copy)}


def _refuse_equal(expected: tuple[Any, ...], value: Any) -> Any:
    """Return a value unless it only equals an expected one of the other kind."""
    equal = [each for each in expected if each == value]
    if equal and all(isinstance(each, bool) is not isinstance(value, bool) for each in equal):
        raise PydanticCustomError("literal_error", "Input should be another value")
    return value
