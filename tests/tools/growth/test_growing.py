"""An application that grows: each step leaves its tests green, and its address the same."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.events.__main__ import main as events
from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.growth.commands import plan_function, plan_tool
from mcp_roundtrip_tools.lint.__main__ import main as lint
from mcp_roundtrip_tools.new.__main__ import render
from mcp_roundtrip_tools.new.upgrade import main as upgrade
from support.clients import Person, answered_on_page, fast_mcp, official
from support.served_application import serve

pytestmark = pytest.mark.anyio

TEXT = {"text": "Ask before you count."}
STATUS = "A-1002 is being packed."

Step = Callable[[Path], Any]

STEPS: dict[str, Step] = {
    "new": lambda folder: None,
    "a second tool": lambda folder: write(plan_tool(folder, "find_parts")),
    "a tool with tasks": lambda folder: write(plan_tool(folder, "count_parts", tasks=True)),
    "another tool with tasks": lambda folder: write(plan_tool(folder, "count_orders", tasks=True)),
    "a second function": lambda folder: write(plan_function(folder, "translate")),
    "a function with tasks": lambda folder: write(plan_function(folder, "summarize", tasks=True)),
    "a tool of one of three functions": lambda folder: write(plan_tool(folder, "find_words", "translate")),
    "upgrade": lambda folder: upgrade(["--project", str(folder)]),
}

TOOLS = ("find_parts", "count_parts", "count_orders", "translate", "summarize", "find_words")


TRIED = ("new", "another tool with tasks", "upgrade")
"""The steps after which the application runs: later ones contain what earlier ones added."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Return a folder of the application after each step."""
    found: dict[str, Path] = {}
    files = {path: text.encode() for path, text in render("orders", "python3.13", "arm64").items()}
    for name, step in STEPS.items():
        folder = found[name] = tmp_path_factory.mktemp("orders")
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        step(folder)
        files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return found


def test_the_tests_of_all_tools_pass(grown):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=grown["upgrade"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("step", TRIED)
async def test_every_tool_is_served_at_the_same_address(grown, step):
    log: list[str] = []
    with serve(grown[step] / "template.yaml", parameters={"AuthMode": "none"}, log=log.append) as app:
        assert app.endpoint_path() == "/mcp"
        for connect in (official, fast_mcp):
            async with connect(app.url("/mcp"), person := Person([{"value": "A-1002"}])) as client:
                assert await client.call("order_status", {}) == {"text": STATUS}
            assert person.asked == ["Which order?"]
        assert await answered_on_page(app.url("/mcp"), "order_status", "A-1002") == STATUS
        present = [name for name in TOOLS if any(grown[step].glob(f"functions/*/{name}.py"))]
        present += [name for name in TOOLS if (grown[step] / "functions" / name).is_dir()]
        for name in present:
            connect = fast_mcp if name == "count_parts" else official  # it follows tasks
            async with connect(app.url("/mcp"), Person([{"value": "words"}])) as client:
                assert await client.call(name, TEXT) == {"length": 4, "unit": "words"}
    assert len(present) == min(max(0, [*STEPS].index(step)), len(TOOLS))
    assert any("tasks/get" in line for line in log) is ("count_parts" in present)


def test_the_sample_events_are_those_of_all_functions_and_the_code_has_no_findings(grown, monkeypatch):
    last = grown["upgrade"]
    monkeypatch.chdir(last)
    committed = {path: path.read_bytes() for path in (last / "events").rglob("*.json")}
    assert events([]) == 0
    assert {path.parent.name for path in last.glob("events/*/*.json")} == {"server", "translate", "summarize"}
    assert {path: path.read_bytes() for path in committed} == committed
    assert lint([]) == 0
