"""The texts that the console copies: curl commands, Python programs and Player tests. The tests run them."""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from support import skips
from support.interpreters import output_of, run
from support.project import FUNCTIONS
from support.served_application import serve

PROJECT: Final = FUNCTIONS.parent
WEB: Final = PROJECT / "development/mcp_roundtrip_tools/console/web"
RECORD: Final = Path(__file__).with_name("record_calls.mjs")
INDIA, PAKISTAN = "Hyderabad, Telangana, India", "Hyderabad, Sindh, Pakistan"
FORMS: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
TIMEOUT_S: Final = 60


def accept(value):
    return {"action": "accept", "content": {"value": value}}


def application(function):
    return {"file": f"functions/{function}/app.py", "template": "template.yaml", "hasStandIns": True}


WEATHER: Final = {"name": "get_weather", "arguments": {"location": "Hyderabad"}}
CALLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "a question": {
        "params": WEATHER,
        "answers": {"place": accept(INDIA)},
        "application": application("weather"),
    },
    "branches": {
        "params": {"name": "compare_weather", "arguments": {"locations": ["Hyderabad", "Tokyo"]}},
        "answers": {"city 1/place": accept(PAKISTAN)},
        "application": application("weather"),
    },
    "declined": {
        "params": WEATHER,
        "answers": {"place": {"action": "decline"}},
        "application": application("weather"),
        "capabilities": FORMS,
    },
    "sampling": {
        "params": {
            "name": "summarize",
            "arguments": {"text": 'Ada\'s "notes": été.\nA line.', "uri": "file:///home/ada/notes.md"},
        },
        "answers": {
            "summary": {
                "role": "assistant",
                "content": {"type": "text", "text": "Notes."},
                "model": "a-person",
            },
            "roots": {"roots": [{"uri": "file:///home/ada", "name": "ada"}]},
        },
        "application": application("summarize"),
    },
    "a task": {
        "params": {"name": "provision_database", "arguments": {"name": "orders", "region": "eu-west-1"}},
        "tool": {"inputSchema": {"properties": {"region": {"x-mcp-header": "Region"}}}},
        "answers": {"size": accept("small"), "keep": accept(True)},
        "application": application("provision"),
    },
    "a prompt": {
        "method": "prompts/get",
        "params": {"name": "triage", "arguments": {"workItemId": "4522"}},
        "answers": {},
        "application": application("work_items"),
    },
    "a resource": {
        "method": "resources/read",
        "params": {"uri": "weather://forecast/Tokyo%2C%20Japan"},
        "answers": {},
        "application": application("weather"),
    },
    "an earlier version": {
        "params": {"name": "get_weather", "arguments": {"location": "Tokyo"}},
        "answers": {},
        "application": application("weather"),
        "protocolVersion": "2025-11-25",
    },
}

COMPARED: Final = frozenset({"structuredContent", "isError", "messages", "contents"})
"""Members of results that are the same for all clients."""


@pytest.fixture(scope="module")
def recorded():
    """All calls, played against the served template, which runs until the module ends."""
    node = skips.find_node("the texts that the console copies")
    lines: list[str] = []
    with serve(PROJECT / "template.yaml", parameters={"AuthMode": "none"}, log=lines.append) as app:
        calls = [{"method": "tools/call", **call} for call in CALLS.values()]
        given = {"web": str(WEB), "url": app.url("/mcp"), "calls": calls}
        done = run(node, RECORD, input=json.dumps(given), timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr + "\n".join(lines[-20:])
        yield dict(zip(CALLS, json.loads(done.stdout), strict=True))


def last_message(body):
    """Return the last JSON-RPC message of a response, which may be an event stream."""
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    return json.loads(events[-1] if events else body)


def test_the_curl_command_of_each_round_gets_the_same_response_again(recorded):
    if shutil.which("curl") is None:
        skips.skip("curl", "the copied curl commands")
    for name in ("a question", "branches", "sampling", "a prompt", "an earlier version"):
        script = "\n".join(f"{command}\necho\necho ----" for command in recorded[name]["curl"])
        printed = output_of("bash", "-c", script, timeout=TIMEOUT_S)
        bodies = [last_message(each) for each in printed.split("\n----\n") if each.strip()]
        for body, before in zip(bodies, recorded[name]["bodies"], strict=True):
            assert _comparable(body) == _comparable(before)


def _comparable(message):
    """Return a message without the state, which is sealed with a new nonce, and without the time."""
    result = dict(message.get("result", {}))
    result.pop("requestState", None)
    return _without_time(result), message.get("error")


def _without_time(value):
    return json.loads(re.sub(r"T\d\d:\d\d", "", json.dumps(value)))


RUN_ALL: Final = """\
import runpy, sys
for path in sys.argv[1:]:
    print("----", path)
    runpy.run_path(path, run_name="__main__")
"""
"""Runs programs in one process, because the import of the clients takes most of the time."""


def test_the_python_programs_get_the_same_results(recorded, tmp_path):
    assert recorded["a task"]["python"] is None, "the official client does not follow tasks"
    calls = {name: call for name, call in recorded.items() if call["python"] is not None}
    files = [tmp_path / f"{name.replace(' ', '_')}.py" for name in calls]
    for file, call in zip(files, calls.values(), strict=True):
        file.write_text(call["python"])
    printed = output_of(sys.executable, "-c", RUN_ALL, *files, timeout=TIMEOUT_S).split("---- ")[1:]
    for (name, call), text in zip(calls.items(), printed, strict=True):
        result, expected = json.loads(text[text.index("{") :]), _result(call)
        for member in expected.keys() & COMPARED:
            assert _without_time(result[member]) == _without_time(expected[member]), name


def _result(call):
    results = (body["result"] for body in call["bodies"] if "result" in body)
    return next(result for result in results if "inputRequests" not in result)


def test_the_player_tests_pass_and_fail_for_another_result(recorded, tmp_path):
    for name, call in recorded.items():
        (tmp_path / f"test_{name.replace(' ', '_')}.py").write_text(call["player"])
    changed = recorded["a question"]["player"].replace("Telangana", "Telanga", 1)
    (tmp_path / "test_changed.py").write_text(changed)
    options = ["-p", "no:cacheprovider", "-q", "--tb=short", "--import-mode=importlib"]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = run(sys.executable, "-m", "pytest", *options, tmp_path, cwd=PROJECT, env=variables)
    assert f"1 failed, {len(recorded)} passed" in done.stdout, done.stdout
    assert "test_changed.py" in done.stdout
