"""MCP Inspector's command line, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import skips

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
    node = shutil.which("node")
    if node is None or not PROGRAM.exists():
        skips.skip(skips.NODE, "MCP Inspector")

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
        printed = {**_object(done.stdout), **_object(done.stderr)}
        # With --verify, it prints a report instead of a result.
        result = printed if "outcome" in printed else printed.get("result")
        return InspectorOutput(done.returncode, result, printed.get("error"))

    return inspected


def _object(output: bytes) -> dict[str, Any]:
    return dict(json.loads(output)) if output.strip() else {}
