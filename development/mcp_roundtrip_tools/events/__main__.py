"""Write sample events to `events/`: a folder for each function.

The events in `events/live/` carry a live `requestState`, expire after ten minutes and are not committed.
Their key, issuer and audience come from the environment if it has MCP_STATE_KEY_ARN, otherwise from
DEVELOPMENT_ENVIRONMENT, whose key is public. `events/live/env.json` passes them to ``sam local invoke
--env-vars``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip import wiring
from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.settings import load_settings
from mcp_roundtrip.variables import PREFIX
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.loading import load_server
from mcp_roundtrip_testing.task_table import TaskTable
from mcp_roundtrip_tools.catalog.catalog import FUNCTIONS
from mcp_roundtrip_tools.events.live import (
    DEVELOPMENT_ENVIRONMENT,
    EVENTS,
    development_ports,
    env_vars,
    invoker,
    live_events,
)
from mcp_roundtrip_tools.events.of_application import Respond, function_events
from mcp_roundtrip_tools.events.stable import stable_events
from mcp_roundtrip_tools.growth.functions import TEMPLATE, tool_functions
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

EXAMPLES = frozenset({"approval", "provision", "summarize", "weather", "work_items"})
"""The functions of this repository, which have events of their own."""


@contextmanager
def example_services(template: Path) -> Iterator[None]:
    """Serve the template's stand-ins, and name them to functions in this process. Raises TemplateError."""
    with serve_stand_ins(template) as variables:
        added = variables.keys() - os.environ.keys()
        os.environ.update({name: variables[name] for name in added})
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]


def write(folder: Path, events: Mapping[str, Any]) -> None:
    """Write JSON files to `folder` by their paths."""
    for name, content in events.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main(
    arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_tools.events"
) -> int:
    """Run the command; return its exit status: 2 outside an application, 1 for another error."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--functions", type=Path, default=FUNCTIONS, help="the folder of the functions")
    parser.add_argument("--output", type=Path, default=EVENTS, help="the folder of the events")
    given = parser.parse_args(arguments)
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")  # the functions run in this process
    deployed = "MCP_STATE_KEY_ARN" in os.environ
    environment = os.environ if deployed else DEVELOPMENT_ENVIRONMENT
    settings = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    try:
        ports = wiring.make_ports(load_settings(settings)) if deployed else development_ports()
        events = _events(given.functions, given.output, ports)
    except McpRoundtripError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, TemplateError) else 1
    write(given.output, {**events, "live/env.json": {"Parameters": env_vars(settings)}})
    print(f"{given.output}/ has the events. Those in {given.output}/live/ expire after ten minutes.")
    return 0


def _events(functions: Path, written: Path, ports: Ports) -> Mapping[str, Any]:
    """Return the events of this repository's examples, or of an application's functions."""
    project = functions.parent
    with example_services(project / TEMPLATE):
        if all((functions / example).is_dir() for example in EXAMPLES):
            # A retry looks for the task that its flow may have become. These flows have not.
            without_tasks = replace(ports, tasks=TaskTable(FakeClock()).port)
            return {**stable_events(), **live_events(invoker(functions, without_tasks))}
        events: dict[str, Any] = {}
        for folder, function in tool_functions(project, load(project / TEMPLATE)).items():
            server = load_server(function.module)
            events |= function_events(folder, server, _responder(server, ports), written)
        return events


def _responder(server: Server, ports: Ports) -> Respond:
    return lambda event: handle(server.endpoint, event, None, lambda: ports)


if __name__ == "__main__":
    sys.exit(main())
