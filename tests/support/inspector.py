"""MCP Inspector's command line, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.interpreters import answering
from support.real_clients import ClientProcess, real_clients


@dataclass(frozen=True)
class InspectorOutput:
    """The output of a command: a result, an error, or both for a tool error."""

    status: int
    result: Any = None
    error: Any = None


Inspect = Callable[..., InspectorOutput]
"""A function of a configuration (`mcpServers`) and the arguments of a command for its only server."""


@pytest.fixture(scope="module")
def inspector() -> Iterator[Inspect]:
    """Run all commands of a module in one process (tests/clients/drivers/inspector.mjs)."""
    [client] = [each for each in real_clients() if each.id == "inspector"]
    with answering(*client.command()) as exchange:
        process = ClientProcess(client, exchange)

        def inspected(configuration: Any, *arguments: str) -> InspectorOutput:
            done = process.run("command", {"configuration": configuration, "args": arguments})
            return _output(done["status"], done["stdout"], done["stderr"])

        yield inspected


def _output(status: int, *printed: str | bytes) -> InspectorOutput:
    found = {name: value for text in printed if text.strip() for name, value in json.loads(text).items()}
    # With --verify, it prints a report instead of a result.
    result = found if "outcome" in found else found.get("result")
    return InspectorOutput(status, result, found.get("error"))
