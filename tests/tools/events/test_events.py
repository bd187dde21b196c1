"""Every sample event with the handler that Lambda calls."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.deployment import wiring
from mcp_roundtrip_testing import load_module
from mcp_roundtrip_tools.sam_local.live_events import Invoke
from support.sample_events import (
    EVENTS,
    ROOT,
    ROUNDS,
    STABLE,
    environment,
    function_of,
    handler_of,
    outcome,
    rounds_of,
)

FUNCTIONS = ROOT / "functions"


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Return a function that calls `app.handler` as Lambda does, with a stand-in for KMS."""
    wiring.ports.cache_clear()
    with environment() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

        def invoked(function: str, event: Any) -> Any:
            folder, handler = handler_of(function)
            return getattr(load_module(FUNCTIONS / folder / "app.py"), handler)(event, None)

        yield invoked
    wiring.ports.cache_clear()


def test_the_table_has_every_event_of_the_examples() -> None:
    examples = {function_of(file) for file in STABLE}
    files = [path.relative_to(EVENTS) for path in EVENTS.rglob("*.json") if path.parent.name in examples]
    assert {file.as_posix() for file in files if "live" not in file.parts} == STABLE.keys()


@pytest.mark.parametrize("file", ROUNDS)
def test_each_round_of_a_call_has_its_outcome(invoke: Invoke, file: str) -> None:
    assert tuple(outcome(response) for _, response in rounds_of(invoke, file)) == ROUNDS[file]


def test_the_command_needs_neither_aws_nor_settings_and_keeps_events_of_other_names(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    shutil.copytree(EVENTS, tmp_path / "events")
    command = [sys.executable, "-m", "mcp_roundtrip_tools.events", "--output", str(tmp_path / "events")]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = {path.relative_to(tmp_path / "events") for path in tmp_path.rglob("*.json")}
    assert written == {path.relative_to(EVENTS) for path in EVENTS.rglob("*.json")}


def test_a_state_of_one_deployment_is_refused_by_another(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    retry, _ = rounds_of(invoke, "weather/call.json")[-1]
    wiring.ports.cache_clear()
    monkeypatch.setenv("MCP_AUDIENCE", "https://another.example/mcp")
    assert outcome(invoke("weather", retry)).what == -32602
