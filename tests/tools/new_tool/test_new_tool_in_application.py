"""New tools of an application without a front door, whose function gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_roundtrip_testing.loading import load_server
from mcp_roundtrip_tools.events.of_application import application_events, sample_value
from mcp_roundtrip_tools.new.__main__ import render
from mcp_roundtrip_tools.new_tool.__main__ import main
from mcp_roundtrip_tools.new_tool.plan import NewToolError, plan_files, write
from support.project import contents

ANOTHER = """
  OtherFunction: {Type: AWS::Serverless::Function, Properties: {CodeUri: other/, Handler: app.handler}}
Outputs:
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a new application."""
    write({tmp_path / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    return tmp_path


def test_every_tool_is_registered_once_and_in_order(project: Path) -> None:
    for name in ("find_customers", "find_parts"):
        assert main([name, "--project", str(project)]) == 0
    assert list(load_server(project / "src/app.py").tools) == ["order_status", "find_customers", "find_parts"]
    text = (project / "src/app.py").read_text("utf-8")
    assert text.endswith(
        '."\n\n\nserver.tool(find_customers)\nserver.tool(find_parts)\n\nhandler = server.lambda_handler\n'
    )
    assert "one_of\n\nfrom find_customers import find_customers\nfrom find_parts import" in text


def test_what_the_author_wrote_stays(project: Path) -> None:
    app = project / "src/app.py"
    written = app.read_text("utf-8").replace("server = Server", "mcp = Server").replace("server.", "mcp.")
    written = written.replace("@server", "@mcp") + "\nprint  # after the handler\n"
    app.write_text(written)
    write(plan_files(project, "find_parts"))
    changed = app.read_text("utf-8")
    added = ["from find_parts import find_parts", "mcp.tool(find_parts)"]
    assert [line for line in changed.splitlines() if line not in written.splitlines()] == added


@pytest.mark.parametrize(
    ("path", "before", "after", "message"),
    [
        ("src/app.py", "handler = server.lambda_handler", "handler = print", "no line `handler = "),
        ("src/app.py", "server = ", "raise SystemError('offline')\nserver = ", "SystemError: offline"),
        ("src/app.py", "def order_status", "def find_parts", "find_parts"),
        ("template.yaml", "\nOutputs:\n", ANOTHER, "2 functions"),
        ("template.yaml", "src/", "nowhere/", "0 functions"),
    ],
)
def test_an_application_that_cannot_get_a_tool_is_not_changed(
    project: Path, path: str, before: str, after: str, message: str
) -> None:
    (project / "other").mkdir()
    (project / "other/app.py").touch()
    changed = project / path
    assert before in changed.read_text("utf-8")
    changed.write_text(changed.read_text("utf-8").replace(before, after))
    found = contents(project)
    with pytest.raises(NewToolError, match=message):
        plan_files(project, "find_parts")
    assert contents(project) == found


@pytest.mark.parametrize("name", ["app", "order_status"])
def test_a_name_that_is_taken_is_refused(project: Path, name: str) -> None:
    with pytest.raises(NewToolError):
        plan_files(project, name)


def test_a_tool_with_tasks_needs_a_front_door(project: Path) -> None:
    with pytest.raises(NewToolError, match="behind a front door"):
        plan_files(project, "find_parts", tasks=True)


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
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "string"}},
                "required": ["a"],
                "$defs": {"A": {"const": 7}},
            },
            {"a": 7},
        ),
    ],
)
def test_the_arguments_of_sample_events_fit_the_schema(schema: object, value: object) -> None:
    assert sample_value(schema) == value


def test_a_tool_that_does_not_ask_has_no_event_with_an_answer(project: Path) -> None:
    events = application_events(
        load_server(project / "src/app.py"), lambda event: {"result": {"content": []}}
    )
    assert events.keys() == {"list.json", "order_status.json"}
