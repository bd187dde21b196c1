"""MCP Inspector's command line, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import skips
from support.real_clients import ClientProcess, real_clients, running

PROGRAM = (
    Path(__file__).parents[2]
    / ".cache/inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

TIMEOUT_S = 60
"""A command takes 0.5 s, but longer on a busy computer."""


@dataclass(frozen=True)
class InspectorOutput:
    """The output of a command: a result, an error, or both for a tool error."""

    status: int
    result: Any = None
    error: Any = None


Inspect = Callable[..., InspectorOutput]
"""A function of a configuration (`mcpServers`) and the arguments of a command for its only server."""


@pytest.fixture
def inspector(tmp_path: Path) -> Inspect:
    """Start a process for each command, as users do."""
    node = skips.find_node("MCP Inspector", PROGRAM)

    def inspected(configuration: Any, *arguments: str) -> InspectorOutput:
        [server] = configuration["mcpServers"]
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps(configuration), encoding="utf-8")
        command = [node, PROGRAM, "--cli", "--config", config, "--server", server, "--format", "json", "-q"]
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            timeout=TIMEOUT_S,
            env={**os.environ, "HOME": str(tmp_path)},  # its folder for data about servers
        )
        return _output(done.returncode, done.stdout, done.stderr)

    return inspected


@pytest.fixture(scope="module")
def inspector_process() -> Iterator[Inspect]:
    """Run all commands of a module in one process (tests/clients/drivers/inspector.mjs)."""
    [client] = [each for each in real_clients() if each.id == "inspector"]
    with running(client.command()) as started:
        process = ClientProcess(client, started)

        def inspected(configuration: Any, *arguments: str) -> InspectorOutput:
            done = process.run("command", {"configuration": configuration, "args": arguments})
            return _output(done["status"], done["stdout"], done["stderr"])

        yield inspected


def _output(status: int, *printed: str | bytes) -> InspectorOutput:
    found = {name: value for text in printed if text.strip() for name, value in json.loads(text).items()}
    # With --verify, it prints a report instead of a result.
    result = found if "outcome" in found else found.get("result")
    return InspectorOutput(status, result, found.get("error"))
