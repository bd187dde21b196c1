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
from mcp_roundtrip_tools.client.sample_values import sample_value
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
