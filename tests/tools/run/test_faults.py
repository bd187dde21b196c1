from textwrap import dedent

import pytest

from mcp_roundtrip_tools.client.terminal_text import Styles
from mcp_roundtrip_tools.run.terminal.terminal import Terminal
from support.messages import META
from support.sam_applications import ONE_SERVER, http, rpc, write_application
from support.served_application import serve

GOOD = """
    import os
    from mcp_roundtrip import Context, Server

    server = Server("greet")

    @server.tool
    def greet(ctx: Context, name: str = "you") -> str:
        return f"Hello {name}"

    handler = server.lambda_handler
    """
MISTAKES = {
    "a syntax error": ("def greet(", "def greet((", "SyntaxError"),
    "a module that does not exist": ("import os", "import nowhere", "'nowhere'"),
    "no handler": ("handler =", "handle =", "handler"),
    "a parameter that no schema has": ("name: str", "name: slice", "DefinitionError: "),
    "a parameter without a type": ("name: str", "name", "greet: parameter 'name'"),
    "an exception in the module": ("import os", "import os; os.environ['NOWHERE']", "KeyError: 'NOWHERE'"),
    "an exit in the module": ("import os", "raise SystemExit(3)", "exit status 3"),
    "a setting that is missing": (
        'return f"Hello',
        'ctx.elicit("a", "?", bool); return f"',
        "MCP_STATE_KEY_ARN",
    ),
}


def post(app, method, sent=None, **params):
    return rpc(app.url(), method, sent=sent, id=7, **params)


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_caller_gets_the_reason_until_the_mistake_is_corrected(tmp_path, kind):
    old, new, reason = MISTAKES[kind]
    template = write_application(tmp_path, ONE_SERVER, {"f/app.py": GOOD.replace(old, new)})
    lines: list[str] = []
    with serve(template, watch_interval_s=0, listeners=[Terminal(lines.append, Styles(False))]) as app:
        error = post(app, "tools/call", meta=META, name="greet", arguments={}).json()["error"]
        assert error["code"] == -32603
        assert reason in error["message"]
        assert "mcp_roundtrip/" not in error["message"]
        assert any(reason in line for line in lines)
        (tmp_path / "f/app.py").write_text(dedent(GOOD))
        result = post(app, "tools/call", meta=META, name="greet", arguments={}).json()["result"]
        assert result["content"][0]["text"] == "Hello you"


def test_requests_that_are_no_json_rpc_get_the_reason_as_a_message(tmp_path):
    with serve(write_application(tmp_path, ONE_SERVER, {"f/app.py": "import nowhere\n"})) as app:
        response = http(app.url("/mcp"))
        assert response.status == 500
        assert "'nowhere'" in response.json()["message"]


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "cf-ray"])
def test_callers_behind_a_proxy_are_not_told(tmp_path, header):
    with serve(write_application(tmp_path, ONE_SERVER, {"f/app.py": "import nowhere\n"})) as app:
        response = post(app, "tools/list", {header: "203.0.113.7"})
        assert (response.status, response.json()) == (500, {"message": "Internal Server Error"})
