"""The official clients in their `initialize` modes repeat the session id that holds what they declared.

They call a tool through a front door. Each request gets a new process of both functions, so that nothing that
the tool knows about the client can come from an earlier request.
"""

import json
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from mcp_roundtrip_tools.catalog.__main__ import main
from support.sam_applications import FRONT_DOOR, front_door_template, write_application
from support.served_application import serve

pytest_plugins = ["support.typescript_client"]

pytestmark = pytest.mark.anyio

SOURCES = {
    "functions/front_door/app.py": FRONT_DOOR,
    "functions/asks/app.py": """
        from typing import Any
        from mcp_roundtrip import Context, Server

        server = Server("asks")

        @server.tool
        def describe_client(ctx: Context) -> dict[str, Any]:
            return {"client": ctx.client, "urls": ctx.supports("elicitation.url")}

        @server.tool
        def sign_in(ctx: Context) -> str:
            ctx.elicit_url("page", "Sign in", "https://x.test/", done=lambda: False)
            return "signed in"

        handler = server.lambda_handler
        """,
}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sessions")
    template = write_application(folder, front_door_template(asks="Asks.Arn"), SOURCES)
    assert main(["--functions", str(folder / "functions")]) == 0
    with serve(template, fresh=True, log=lambda line: None) as app:
        yield app


async def test_the_python_sdk_is_known_in_its_later_requests(app):
    info = types.Implementation(name="the-python-sdk", version="2.3.0")
    before = app.processes_started
    async with Client(app.url(), mode="legacy", client_info=info, elicitation_callback=_decline) as client:
        described = await client.call_tool("describe_client", {})
        with pytest.raises(MCPError) as sent:
            await client.call_tool("sign_in", {})
    assert described.structured_content == {
        "client": {"name": "the-python-sdk", "version": "2.3.0"},
        "urls": True,
    }
    assert sent.value.code == -32042
    assert f": {sent.value.data['elicitations'][0]['url']}" in str(sent.value), "the user sees no more"
    assert app.processes_started - before >= 5, "initialize, and two calls of two functions"


async def _decline(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


async def test_a_python_client_that_declares_nothing_is_sent_to_no_url(app):
    async with Client(app.url(), mode="legacy") as client:
        described = await client.call_tool("describe_client", {})
        asked = await client.call_tool("sign_in", {})
    assert described.structured_content is not None
    assert described.structured_content["urls"] is False
    assert asked.is_error


TYPESCRIPT = """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "the-typescript-sdk", version: "2.4.0" }, { capabilities: CAPABILITIES });
const transport = new StreamableHTTPClientTransport(new URL(URL_OF_SERVER));
await client.connect(transport);
const hadSession = Boolean(transport.sessionId);
const { structuredContent } = await client.callTool({ name: "describe_client", arguments: {} });
await transport.terminateSession();
console.log(JSON.stringify({ ...structuredContent, hadSession }));
await client.close();
"""


@pytest.mark.parametrize(
    ("elicitation", "urls"), [({"url": {}}, True), ({"form": {}}, False)], ids=["urls", "forms"]
)
def test_the_typescript_sdk_is_known_in_its_later_requests(app, run_module, elicitation, urls):
    """Ending the session raises nothing, although the server refuses it with 405."""
    program = TYPESCRIPT.replace("URL_OF_SERVER", json.dumps(app.url()))
    program = program.replace("CAPABILITIES", json.dumps({"elicitation": elicitation}))
    printed = json.loads(run_module(program))
    client = {"name": "the-typescript-sdk", "version": "2.4.0"}
    assert printed == {"client": client, "urls": urls, "hadSession": True}
