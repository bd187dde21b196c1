"""What cannot run on this computer, in the console."""

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


@pytest.fixture
def app(tmp_path):
    template = write_application(tmp_path, TEMPLATE, {"f/app.py": SOURCE})
    with serve(template, watch_interval_s=0) as running:
        yield running


def test_what_is_left_out_is_on_the_first_page(app, open_console):
    assert app.console_url is not None
    left_out, *_ = open_console(app.console_url)(
        "#/",
        ("texts", ".left-out li"),
        ("axe",),
        ("fits",),
        options={"viewport": {"width": 400, "height": 700}},
    )
    assert [line.split(":")[0] for line in left_out] == ["Nested", "Node.Runtime"]
    assert "GET /node" in left_out[1]
