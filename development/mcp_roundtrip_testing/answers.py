"""Responses to what a call asks, from plain values. The tests of an author and `make call` share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RESPONSE_MEMBERS = {"action", "content"}


def input_response(request: Mapping[str, Any] | None, given: Any) -> Any:
    """Return the entry of `inputResponses` for a request; `request` is None for a key that is not asked.

    `given` is a whole response, such as ``{"action": "decline"}``; the content of a form: a dict, or the
    value or the title of a single field; the text of a sampled message; or a result for sampling and roots.
    For a URL, any value but False means consent.
    """
    if request is None or (isinstance(given, Mapping) and is_response(given)):
        return given
    params = request.get("params") or {}
    match request["method"]:
        case "sampling/createMessage" if isinstance(given, str):
            return sampled_message(given)
        case "elicitation/create" if params.get("mode") == "url":
            return {"action": "decline" if given is False else "accept"}
        case "elicitation/create":
            content = given if isinstance(given, Mapping) else _single(params["requestedSchema"], given)
            return {"action": "accept", "content": content}
    return given


def is_response(given: Mapping[str, Any]) -> bool:
    """Return whether an answer is a whole response of an elicitation, and not the content of a form."""
    return given.get("action") in ("accept", "decline", "cancel") and given.keys() <= _RESPONSE_MEMBERS


def sampled_message(text: str) -> dict[str, Any]:
    """Return the result of sampling with this text, which a person wrote."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "by-hand", "stopReason": "endTurn"}


def choices_of(schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return the values that a schema allows, each with its title; none if it allows every value."""
    if isinstance(schema.get("enum"), list):
        titles = schema.get("enumNames") or map(str, schema["enum"])
        return list(zip(schema["enum"], titles, strict=False))
    branches = schema.get("oneOf") or schema.get("anyOf") or ()
    if not all(isinstance(each, Mapping) and "const" in each for each in branches):
        return []
    return [(each["const"], str(each.get("title", each["const"]))) for each in branches]


def _single(schema: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return the content of a form with one field. Raises ValueError for one with several."""
    properties = schema.get("properties", {})
    if len(properties) > 1:
        raise ValueError(f"the answer must be an object with {', '.join(properties)}")
    [(name, field)] = properties.items() or [("value", {})]
    values = {title: value for value, title in choices_of(field)}
    return {name: values.get(given, given) if isinstance(given, str) else given}
