import io
import json
import os
import re

import pytest

from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.invoke.command import main
from support.interpreters import output_of
from support.project import ROOT
from support.sample_events import EVENTS
from support.served_application import serve

TEMPLATE = ROOT / "template.yaml"


@pytest.fixture(scope="module")
def app():
    with serve(TEMPLATE, parameters={"AuthMode": "none"}, log=None) as app:
        yield app


@pytest.fixture
def template():
    return TEMPLATE


@pytest.fixture
def saved(tmp_path):
    return tmp_path / "response.json"


def port_of(app):
    return app.url("").rpartition(":")[2]


def test_a_run_of_another_application_is_not_asked(app, tmp_path, capsys):
    event = str(EVENTS / "weather/call.json")
    missing = tmp_path / "template.yaml"
    assert main(["weather", "-e", event, "--port", port_of(app), "--template", str(missing)]) == 2
    assert "template.yaml" in capsys.readouterr().err


def result(response):
    return (json.loads(response["body"]) if "body" in response else response)["result"]


def test_the_commands_of_the_guide_play_three_rounds(app, tmp_path):
    guide = (ROOT / "docs/guides/sample-events.md").read_text("utf-8")
    commands = re.findall(r"^ +(make invoke FUNCTION=\w+ EVENT=.*)$", guide, re.MULTILINE)
    assert len(commands) == 3
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for command in commands:
        text = re.sub(r"\b(\d\.json)", rf"{tmp_path}/\1", command)
        printed = output_of("sh", "-c", text, cwd=ROOT, env={**variables, "PORT": port_of(app)})
    [block] = result(json.loads(printed))["content"]
    assert "Duplicate of Bug #4301" in block["text"]


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
    assert f"task {result(task)['taskId']} ends" in "\n".join(invoke.log)
