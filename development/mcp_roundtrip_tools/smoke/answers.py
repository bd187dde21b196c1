"""Answers to questions, made from their schemas: a default, the first choice, or the smallest value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMATS = {
    "email": "smoke@example.com",
    "uri": "https://example.com/",
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
}


def content_for(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return content for the form of a question; members that are not required are left out."""
    properties = schema.get("properties", {})
    return {
        name: _value(properties[name]) for name in schema.get("required", properties) if name in properties
    }


def _value(schema: Mapping[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return choices[0]["const"]
    match schema.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", schema.get("maximum", 1))
        case "array":
            return [_value(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    text = "smoke"
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", None)]
