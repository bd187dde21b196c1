import json
import os
import sys
from shutil import rmtree

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from mcp_roundtrip_testing import WITH_TASKS
from mcp_roundtrip_tools.client.sample_values import sample_value
from mcp_roundtrip_tools.events import function_events, stale_events
from support.interpreters import run
from support.project import contents, copy_project, edit
from support.sample_events import EVENTS, STABLE, function_of

server = Server("orders")


@server.tool
def find_order(number: str) -> str:
    """Find an order."""
    return number


@server.prompt
def greet() -> str:
    return "Greet the user."


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "enum": ["red", "blue"]}, "red"),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "string", "minLength": 9}, "example.."),
        ({"type": "string", "format": "date"}, "2026-07-28"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, 1),
        (
            {
                "oneOf": [{"$ref": "#/$defs/A"}],
                "required": ["kind"],
                "$defs": {"A": {"type": "object", "properties": {"kind": {"const": "a"}}}},
            },
            {"kind": "a"},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "string"}},
                "required": ["a"],
                "$defs": {"A": {"const": 7}},
            },
            {"a": 7},
        ),
    ],
)
def test_the_arguments_fit_the_schema(schema, value):
    assert sample_value(schema) == value


def test_a_function_has_an_event_for_each_tool(tmp_path):
    events = function_events("shop", server, tmp_path)
    assert events.keys() == {"shop/list.json", "shop/find_order.json"}


def test_the_event_of_a_tool_declares_the_capabilities_that_the_tool_requires(tmp_path):
    demanding = Server("orders")

    @demanding.tool(requires=["extensions.com.example/orders"], task="optional")
    def find_order(number: str) -> str:
        """Find an order."""
        return number

    event = function_events("shop", demanding, tmp_path)["shop/find_order.json"]
    declared = json.loads(event["body"])["params"]["_meta"][META_CLIENT_CAPABILITIES]
    assert declared == {**WITH_TASKS, "extensions": {TASKS_EXTENSION: {}, "com.example/orders": {}}}


def test_the_events_that_were_written_for_a_removed_tool_are_stale(tmp_path):
    (tmp_path / "shop").mkdir()
    calls = {"find_order": "find_order", "cancel_order": "cancel_order", "unknown": "nope", "greet": "greet"}
    calls |= {"find_order_bad_arguments": "find_order", "cancel_order_bad_arguments": "cancel_order"}
    for file, name in calls.items():
        event = {"body": json.dumps({"params": {"name": name}})}
        (tmp_path / f"shop/{file}.json").write_text(json.dumps(event))
    (tmp_path / "shop/list.json").write_text("{}")
    stale = [file.name for file in stale_events("shop", server, tmp_path)]
    assert stale == ["cancel_order.json", "cancel_order_bad_arguments.json"]


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (json.dumps({"params": {"arguments": {"number": "A-1001"}}}), "A-1001"),
        (json.dumps({"params": {"arguments": {"order": "A-1001"}}}), "example"),  # a parameter of before
        (json.dumps({"params": {"arguments": ["A-1001"]}}), "example"),
        ("{}", "example"),
        ("no JSON", "example"),
    ],
)
def test_the_arguments_that_the_author_wrote_stay(tmp_path, body, number):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/find_order.json").write_text(json.dumps({"body": body}))
    event = function_events("shop", server, tmp_path)["shop/find_order.json"]
    assert json.loads(event["body"])["params"]["arguments"] == {"number": number}


def test_the_table_has_every_event_of_the_examples():
    examples = {function_of(file) for file in STABLE}
    files = [path.relative_to(EVENTS) for path in EVENTS.rglob("*.json") if path.parent.name in examples]
    assert {file.as_posix() for file in files if "live" not in file.parts} == STABLE.keys()


def test_the_command_needs_neither_aws_nor_settings_and_keeps_events_of_other_names(tmp_path):
    project = copy_project(tmp_path / "project")
    rmtree(project / "events/summarize")
    removed = {"body": json.dumps({"params": {"name": "removed"}})}
    (project / "events/weather/removed.json").write_text(json.dumps(removed))
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    before = contents(project)
    done = run(sys.executable, "-m", "mcp_roundtrip_tools", "events", cwd=project, env=variables)
    assert (done.returncode, done.stderr.split()[:1]) == (0, ["events/weather/removed.json"])
    after = contents(project)
    assert before.items() <= after.items()
    written = {f"events/summarize{file}" for file in ("", "/list.json", "/summarize.json")}
    assert after.keys() - before.keys() == written


def test_a_module_that_cannot_be_imported_is_named_without_the_frames_of_this_program(tmp_path):
    project = copy_project(tmp_path / "project")
    edit(project / "functions/weather/app.py", "from mcp_roundtrip", "import not_there\nfrom mcp_roundtrip")
    done = run(sys.executable, "-m", "mcp_roundtrip_tools", "events", cwd=project)
    assert done.returncode == 2
    assert "functions/weather/app.py cannot" in done.stderr
    assert "execution_environments" not in done.stderr
