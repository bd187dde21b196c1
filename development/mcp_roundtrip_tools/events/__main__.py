"""Write sample events to `events/`: a folder for each function."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_testing.environments import load_server
from mcp_roundtrip_tools.catalog.catalog import FUNCTIONS
from mcp_roundtrip_tools.events.of_application import function_events
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
        events = _events(given.functions, given.output)
    except McpRoundtripError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, TemplateError) else 1
    write(given.output, events)
    print(f"{given.output}/ has the events.")
    return 0


def _events(functions: Path, written: Path) -> Mapping[str, Any]:
    project, events = functions.parent, dict[str, Any]()
    for folder, function in tool_functions(project, load(project / TEMPLATE)).items():
        events |= function_events(folder, load_server(function.module), written)
    return events


if __name__ == "__main__":
    sys.exit(main())
