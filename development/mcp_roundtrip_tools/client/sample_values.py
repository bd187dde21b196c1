"""Values that fit a JSON Schema, for events and for questions that no person answers."""

from collections.abc import Mapping
from typing import Any


def sample_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to one of a call's `inputRequests`."""
    match request:
        case {"method": "sampling/createMessage"}:
            text = {"type": "text", "text": "A summary."}
            return {"role": "assistant", "content": text, "model": "a-model", "stopReason": "endTurn"}
        case {"method": "roots/list"}:
            return {"roots": [{"uri": "file:///home/ada/project", "name": "project"}]}
        case {"params": {"requestedSchema": schema}}:
            return {"action": "accept", "content": sample_value(schema)}
    return {"action": "accept"}


def sample_value(schema: Any, root: Any = None) -> Any:
    """Return a value that fits a JSON Schema, as far as it names types, defaults, enums and minima."""
    root = schema if root is None else root
    if not isinstance(schema, dict):
        return None
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][0]
    if "$ref" in schema:
        return sample_value(_resolve(schema["$ref"], root), root)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return sample_value(_with_required(schema[name][0], schema, root), root)
    return _of_type(schema, root)


def _with_required(branch: Any, schema: Mapping[str, Any], root: Any) -> Any:
    """Return a branch that also requires what the schema around it does, such as a discriminator."""
    if not isinstance(branch, dict) or "required" not in schema:
        return branch
    found = _resolve(branch["$ref"], root) if "$ref" in branch else branch
    return {**found, "required": [*found.get("required", ()), *schema["required"]]}


def _of_type(schema: dict[str, Any], root: Any) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {each: sample_value(properties.get(each), root) for each in schema.get("required", ())}
        case "array":
            return [sample_value(schema.get("items"), root)] * max(schema.get("minItems", 1), 1)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            return _text(schema)
    return None


def _text(schema: Mapping[str, Any]) -> str:
    formats = {"date": "2026-07-28", "date-time": "2026-07-28T12:00:00Z", "uri": "https://example.com"}
    text = {**formats, "email": "ada@example.com"}.get(str(schema.get("format")), "example")
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _resolve(reference: str, root: Any) -> Any:
    found = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {})
    return found
