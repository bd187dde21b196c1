"""What keeps a function from running, and what cannot run on this computer, in the console."""

import pytest

from support.sam_applications import write_application
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

TEMPLATE = """
    Globals: {Function: {Handler: app.handler, Timeout: 20, Environment: {Variables: {MCP_AUTH_MODE: none}}}}
    Resources:
      F:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: f
          Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
      Node:
        Type: AWS::Serverless::Function
        Properties:
          Runtime: nodejs22.x
          Events: {E: {Type: HttpApi, Properties: {Path: /node, Method: GET}}}
      Nested: {Type: AWS::Serverless::Application, Properties: {Location: https://nowhere.example/t.yaml}}
    """
SOURCE = """
    from mcp_roundtrip import Server

    server = Server("greet")

    @server.tool
    def greet(name: str) -> str:
        return f"Hello {name}"

    handler = server.lambda_handler
    """
SAVE = """
    (source) => fetch("/console/api/sources/F", {
      method: source === null ? "DELETE" : "PUT",
      headers: { "x-console": "1", "content-type": "application/json" },
      ...(source === null ? {} : { body: JSON.stringify({ files: { "app.py": source } }) }),
    }).then((response) => { window.dispatchEvent(new Event("focus")); return response.status; })
    """


@pytest.fixture
def app(tmp_path):
    template = write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    with serve(template, watch_interval_s=0, checks=True) as running:
        yield running


def test_a_problem_is_above_every_page_until_it_is_corrected(app, open_console):
    assert app.console_url is not None
    seen = open_console(app.console_url)(
        "#/tools/greet",
        ("count", ".problem"),
        ("evaluate", f"({SAVE})('import nowhere')"),
        ("wait", ".problem"),
        ("texts", ".problem"),
        ("fits",),
        ("axe",),
        ("size", 1180, 700),
        ("open", "#/"),
        ("texts", ".problem pre, .sidebar .error, main .error"),
        ("evaluate", "document.querySelector('.problem').getBoundingClientRect().bottom < innerHeight"),
        ("evaluate", f"({SAVE})(null)"),
        ("gone", ".problem"),
        ("wait", ".tile"),
        ("texts", ".left-out li"),
        ("axe",),
        ("size", 400, 700),
        ("fits",),
        options={"viewport": {"width": 400, "height": 700}},
    )
    before, saved, [shown], texts, is_in_view, corrected, left_out = seen
    assert (before, saved, is_in_view, corrected) == (0, 200, True, 200)
    assert [line.split(":")[0] for line in left_out] == ["Nested", "Node.Runtime"]
    assert "GET /node" in left_out[1]
    assert shown.startswith("F does not run")
    assert texts == [
        '  File "app.py", line 1, in <module>\n    import nowhere\n'
        "ModuleNotFoundError: No module named 'nowhere'"
    ]
