import subprocess
import sys
from pathlib import Path

import pytest

from mcp_roundtrip_tools.events import main as events
from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.growth.commands import plan_function, plan_tool
from mcp_roundtrip_tools.lint.checking import main as lint
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.new.upgrade import main as upgrade


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("orders")
    write({folder / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    write(plan_tool(folder, "find_parts"))
    write(plan_tool(folder, "count_parts", tasks=True))
    write(plan_tool(folder, "count_orders", tasks=True))
    write(plan_function(folder, "translate"))
    write(plan_function(folder, "summarize", tasks=True))
    write(plan_tool(folder, "find_words", "translate"))
    assert upgrade(["--project", str(folder)]) == 0
    return folder


def test_the_tests_of_all_tools_pass(grown):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=grown, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_sample_events_are_those_of_all_functions_and_the_code_has_no_findings(grown, monkeypatch):
    monkeypatch.chdir(grown)
    committed = {path: path.read_bytes() for path in (grown / "events").rglob("*.json")}
    assert events([]) == 0
    assert {path.parent.name for path in grown.glob("events/*/*.json")} == {
        "server",
        "translate",
        "summarize",
    }
    assert {path: path.read_bytes() for path in committed} == committed
    assert lint([]) == 0
