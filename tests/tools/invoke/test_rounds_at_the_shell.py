import io
import json
import os
import re
import subprocess

import pytest

from mcp_roundtrip_tools.call.terminal import Terminal
from support.project import ROOT
from support.sample_events import EVENTS


@pytest.fixture
def template():
    return ROOT / "template.yaml"


@pytest.fixture
def saved(tmp_path):
    return tmp_path / "response.json"


def result(response):
    return (json.loads(response["body"]) if "body" in response else response)["result"]


def test_the_commands_of_the_guide_play_three_rounds(port, tmp_path):
    guide = (ROOT / "docs/guides/sample-events.md").read_text("utf-8")
    commands = re.findall(r"^ +(make invoke FUNCTION=\w+ EVENT=.*)$", guide, re.MULTILINE)
    assert len(commands) == 3
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for command in commands:
        text = re.sub(r"\b(\d\.json)", rf"{tmp_path}/\1", command)
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=ROOT,
            env={**variables, "PORT": str(port)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    [block] = result(json.loads(done.stdout))["content"]
    assert "resolved as Duplicate of Bug #4301" in block["text"]


def test_questions_are_asked_at_the_terminal(invoke, saved):
    call = ["functions/weather", "-e", EVENTS / "weather/direct_call.json"]
    saved.write_text(json.dumps(invoke(*call)))
    shown = io.StringIO()
    terminal = Terminal(io.StringIO("2\n"), shown, is_interactive=True)
    done = invoke(*call, "--round", saved, terminal=terminal)
    assert result(done)["structuredContent"]["place"] == "Hyderabad, Sindh, Pakistan"
    assert "get_weather asks place" in shown.getvalue()


def test_a_task_ends_with_the_command_which_says_so(invoke, saved):
    call = ["provision", "-e", EVENTS / "provision/call.json"]
    saved.write_text(json.dumps(invoke(*call)))
    saved.write_text(json.dumps(invoke(*call, "--round", saved, "--answers", '{"size": "small"}')))
    task = invoke(*call, "--round", saved, "--answers", '{"region": "eu-central-1"}')
    assert result(task)["resultType"] == "task"
    assert f"The task {result(task)['taskId']} ends with this command." in "\n".join(invoke.log)
