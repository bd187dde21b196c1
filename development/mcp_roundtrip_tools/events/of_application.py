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
    """Return the events of the function of `folder` by file: one for each tool that no other event calls.

    A tool's arguments are those of its event in `written`, the folder of the events, if the tool still has
    these parameters.
    """
    called = _called_tools(written / folder)
    events = {} if called else {f"{folder}/list.json": post(PATH, message(TOOLS_LIST))}
    for name, tool in server.tools.items():
        file = f"{folder}/{name}.json"
        if name in called and not (written / file).is_file():
            continue
        schema = tool.definition()["inputSchema"]
        arguments = _written_arguments(written / file, schema) or sample_value(schema)
        events[file] = post(PATH, call(name, arguments))
    return events


def _called_tools(folder: Path) -> set[str]:
    """Return the names of the tools that the events in a folder call."""
    return {params.get("name", "") for file in folder.glob("*.json") if (params := _params(file))}


def _params(path: Path) -> dict[str, Any]:
    """Return the params of a request in an event; {} without one."""
    try:
        params = json.loads(json.loads(path.read_text("utf-8"))["body"])["params"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return params if isinstance(params, dict) else {}


def _written_arguments(path: Path, schema: Mapping[str, Any]) -> Any:
    """Return the arguments of the call in an event; None if there are none, or their names do not fit."""
    arguments = _params(path).get("arguments")
    if not isinstance(arguments, dict):
        return None
    fit = set(schema.get("required", ())) <= arguments.keys() <= schema.get("properties", {}).keys()
    return arguments if fit else None
