"""Write sample events to `events/`: a folder for each function.

They are MCP messages, and a call of each tool with values from its schema.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.protocol.capabilities import CapabilityPath, declare
from mcp_roundtrip.protocol.constants import TOOLS_CALL, TOOLS_LIST
from mcp_roundtrip_testing.http_requests import client_meta, mirrored_headers
from mcp_roundtrip_testing.player import WITH_TASKS
from mcp_roundtrip_tools.catalog.catalog import load_servers
from mcp_roundtrip_tools.client.sample_values import sample_value
from mcp_roundtrip_tools.growth.entries import TEMPLATE, tool_functions
from mcp_roundtrip_tools.run.api_gateway.payload import to_event
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.template.model import Route
from mcp_roundtrip_tools.template.yaml_reader import load

Event = dict[str, Any]

RECEIVED_AT = 1_785_196_800.0
"""The time of all events in epoch seconds: the date of the protocol revision."""


def message(
    method: str, *, number: int = 1, capabilities: Mapping[str, Any] = WITH_TASKS, **params: Any
) -> Event:
    """Return a JSON-RPC request with the id `number`. It is also the event of a direct invocation."""
    meta = client_meta({"name": "sample-events", "version": "1.0.0"}, capabilities)
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


def call(name: str, arguments: Mapping[str, Any], **more: Any) -> Event:
    """Return a `tools/call` request; `more` are options of `message` and additional params."""
    return message(TOOLS_CALL, name=name, arguments=arguments, **more)


def post(path: str, body: Mapping[str, Any]) -> Event:
    """Return the event of a POST whose headers match the body."""
    headers = mirrored_headers(body["method"], body["params"], tools={})
    return event("POST", path, {"content-type": "application/json", **headers}, body)


def event(method: str, path: str, headers: Mapping[str, str], body: Any = None) -> Event:
    """Return the event of a request in payload format 2.0."""
    common = {
        "host": "abcdefghij.execute-api.eu-west-1.amazonaws.com",
        "accept": "application/json, text/event-stream",
        "user-agent": "sample-events/1.0.0",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
    request = Request(method, path, tuple({**common, **headers}.items()), content, source_ip="203.0.113.7")
    return to_event(request, Route("ANY", path, ""), {}, request_id="sample-event", now=RECEIVED_AT)


PATH = "/mcp"


def function_events(folder: str, server: Server, written: Path) -> dict[str, Event]:
    """Return the events of the function of `folder` by file: one for each tool that no other event calls.

    The arguments are those of its event in `written`, the folder of the events, if they fit the tool.
    """
    requests = [_params(file) for file in (written / folder).glob("*.json")]
    called = {params.get("name", "") for params in requests if params}
    events = {} if called else {f"{folder}/list.json": post(PATH, message(TOOLS_LIST))}
    for name, tool in server.tools.items():
        file = f"{folder}/{name}.json"
        if name in called and not (written / file).is_file():
            continue
        schema = tool.definition()["inputSchema"]
        arguments = _written_arguments(written / file, schema) or sample_value(schema)
        events[file] = post(PATH, call(name, arguments, capabilities=_capabilities(tool.requires)))
    return events


def _capabilities(requires: Iterable[CapabilityPath]) -> Mapping[str, Any]:
    """Return the capabilities of a client that can be asked and has tasks, and that a tool accepts."""
    declared: dict[str, Any] = deepcopy({**WITH_TASKS})
    for path in requires:
        declare(declared, path)
    return declared


def stale_events(folder: str, server: Server, written: Path) -> list[Path]:
    """Return the events that this program or `new-tool` wrote for tools of `folder` that are gone."""
    names = {*server.tools, *server.prompts}
    stale = []
    for file in sorted((written / folder).glob("*.json")):
        name = _params(file).get("name")
        if file.stem in (name, f"{name}_bad_arguments") and name not in names:
            stale.append(file)
    return stale


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


EVENTS: Final = Path("events")


def write(folder: Path, events: Mapping[str, Any]) -> None:
    """Write JSON files to `folder` by their paths."""
    for name, content in events.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Raises TemplateError outside an application, and CatalogError."""
    argparse.ArgumentParser(prog="mcp-roundtrip events", description=__doc__).parse_args(arguments)
    functions = tool_functions(Path(), load(TEMPLATE))
    servers = load_servers({folder: function.module for folder, function in functions.items()})
    for folder, server in servers.items():
        write(EVENTS, function_events(folder, server, EVENTS))
        for file in stale_events(folder, server, EVENTS):
            print(f"{file} calls a tool that does not exist: delete the file", file=sys.stderr)
    print(f"{EVENTS}/ has the events.")
    return 0
