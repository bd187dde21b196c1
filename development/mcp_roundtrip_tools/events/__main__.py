"""Write sample events to `events/`: a folder for each function."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_testing.environments import load_server
from mcp_roundtrip_tools.catalog.catalog import FUNCTIONS
from mcp_roundtrip_tools.events.of_application import function_events, stale_events
from mcp_roundtrip_tools.growth.functions import TEMPLATE, tool_functions
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

EVENTS: Final = Path("events")


def write(folder: Path, events: Mapping[str, Any]) -> None:
    """Write JSON files to `folder` by their paths."""
    for name, content in events.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 2 outside an application, 1 for another error."""
    parser = argparse.ArgumentParser(prog="mcp-roundtrip events", description=__doc__)
    parser.add_argument("--functions", type=Path, default=FUNCTIONS, help="the folder of the functions")
    parser.add_argument("--output", type=Path, default=EVENTS, help="the folder of the events")
    given = parser.parse_args(arguments)
    try:
        servers = _servers(given.functions.parent)
    except McpRoundtripError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, TemplateError) else 1
    for folder, server in servers.items():
        write(given.output, function_events(folder, server, given.output))
        for file in stale_events(folder, server, given.output):
            print(f"{file} calls a tool that does not exist: delete the file", file=sys.stderr)
    print(f"{given.output}/ has the events.")
    return 0


def _servers(project: Path) -> dict[str, Server]:
    """Return the servers of the functions with tools, by the folder of their events."""
    functions = tool_functions(project, load(project / TEMPLATE))
    return {folder: load_server(function.module) for folder, function in functions.items()}


if __name__ == "__main__":
    sys.exit(main())
