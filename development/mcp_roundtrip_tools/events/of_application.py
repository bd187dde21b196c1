"""The sample events of a function of an application: a call of each tool, with values from its schemas.

The values are valid for their types. Replace those that the tool does not know, such as ids: they stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.protocol.constants import TOOLS_LIST
from mcp_roundtrip_tools.events.messages import Event, call, message, post

PATH = "/mcp"


def function_events(folder: str, server: Server, written: Path) -> dict[str, Event]:
    """Return the events of the function of `folder` by file.

    A tool's arguments are those of its event in `written`, the folder of the events, if the tool still has
    these parameters.
    """
    events = {f"{folder}/list.json": post(PATH, message(TOOLS_LIST))}
    for name, tool in server.tools.items():
        file = f"{folder}/{name}.json"
        schema = tool.definition()["inputSchema"]
        arguments = _written_arguments(written / file, schema) or sample_value(schema)
        events[file] = post(PATH, call(name, arguments))
    return events


def _written_arguments(path: Path, schema: Mapping[str, Any]) -> Any:
    """Return the arguments of the call in an event; None if there are none, or their names do not fit."""
    try:
        arguments = json.loads(json.loads(path.read_text("utf-8"))["body"])["params"]["arguments"]
        fit = set(schema.get("required", ())) <= arguments.keys() <= schema.get("properties", {}).keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return arguments if fit else None


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
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
            return sample_value(schema[name][0], root)
    return _of_type(schema, root)


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
