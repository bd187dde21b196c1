"""What users, models and clients answer, and what they get wrong."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Request = Mapping[str, Any]


def accept(request: Request) -> Any:
    match request["method"], request.get("params", {}):
        case "elicitation/create", {"mode": "url"}:
            return {"action": "accept"}
        case "elicitation/create", params:
            return {"action": "accept", "content": fill_in(params["requestedSchema"])}
        case "sampling/createMessage", _:
            text = {"type": "text", "text": "It is short."}
            return {"role": "assistant", "content": text, "model": "model-1", "stopReason": "endTurn"}
        case "roots/list", _:
            return {"roots": [{"uri": "file:///home/alice", "name": "home"}]}
    return {"approved": True}


def fill_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for the fields of a form; optional ones without a default are left out."""
    required = schema.get("required", ())
    return {
        name: field.get("default", _value(field))
        for name, field in schema["properties"].items()
        if name in required or "default" in field
    }


def _value(field: Mapping[str, Any]) -> Any:
    if "enum" in field:
        return field["enum"][0]
    if field.get("format") == "date":
        return "2026-08-02"
    values = {"boolean": True, "integer": field.get("minimum", 1) + 3, "number": 1.5}
    return values.get(field.get("type", ""), "text")


def invalid(request: Request) -> Any:
    """Answer with the right shape, and a value that the question does not allow."""
    answer = accept(request)
    if "content" in answer and request["method"] == "elicitation/create":
        fields = request["params"]["requestedSchema"]["properties"]
        text, texts = "secret-4711", ["secret-4711"]
        return {**answer, "content": {name: text if "format" in fields[name] else texts for name in fields}}
    if "roots" in answer:
        return {"roots": [{"uri": "https://example.com/secret-4711"}]}
    return {**answer, "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}


ANSWERS: Final[Mapping[str, Callable[[Request], Any]]] = {
    "accept": accept,
    "decline": lambda request: {"action": "decline"},
    "cancel": lambda request: {"action": "cancel"},
    "invalid": invalid,
    "malformed": lambda request: "secret-4711",
    "with nulls": lambda request: {**accept(request), "_meta": None},
}
"""How a user answers -> the answer to a request."""
