"""The official Python client in its `initialize` mode, against template.yaml over HTTP."""

from pathlib import Path

import mcp_types as types
import pytest
from anyio import to_thread
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.page_user import answer_page, link_in
from support.project import FUNCTIONS
from support.served_application import serve

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
PATHS = ["/mcp", "/tools/weather"]

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def app():
    with serve(TEMPLATE, fresh=True, parameters={"AuthMode": "none"}, log=lambda line: None) as app:
        yield app


@pytest.mark.parametrize("path", PATHS)
async def test_it_opens_with_initialize_lists_and_calls(app, path):
    async with Client(app.url(path), mode="legacy") as client:
        assert client.protocol_version == "2025-11-25"
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("get_weather", {"location": "Tokyo"})
    all_names = {name for server in load_function_servers(FUNCTIONS).values() for name in server.tools}
    assert names == (all_names if path == "/mcp" else {"get_weather", "compare_weather"})
    assert result.structured_content is not None
    assert "Tokyo" in result.structured_content["place"]


@pytest.mark.parametrize("path", PATHS)
async def test_its_user_answers_on_a_page_and_the_same_call_returns_the_result(app, path):
    """The caller is anonymous: the session tells its call apart from those of others."""
    arguments: dict[str, object] = {"location": "Hyderabad"}
    async with Client(app.url(path), mode="legacy") as client:
        asked = await client.call_tool("get_weather", arguments)
        [block] = asked.content
        assert isinstance(block, types.TextContent)
        link = link_in(block.text)
        await to_thread.run_sync(answer_page, link, "Hyderabad, Sindh, Pakistan")
        answered = await client.call_tool("get_weather", arguments)
    assert not asked.is_error
    assert link.startswith(app.url("/mcp/questions?token="))
    assert answered.structured_content is not None
    assert answered.structured_content["place"] == "Hyderabad, Sindh, Pakistan"


async def test_it_lists_and_reads_what_else_there_is_and_takes_defaults_and_errors(app):
    async with Client(app.url("/mcp"), mode="legacy") as client:
        await client.session.send_ping()
        assert (await client.list_prompts()).prompts
        assert (await client.list_resource_templates()).resource_templates
        resource = (await client.list_resources()).resources[0]
        assert (await client.read_resource(resource.uri)).contents
        summary = await client.call_tool("summarize", {"text": "Whales are mammals. They live in the sea."})
        with pytest.raises(MCPError) as missing:
            await client.read_resource("nowhere://x")
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("nothing", {})
    assert summary.structured_content is not None
    assert summary.structured_content["model"] == "sumbasic"
    assert (missing.value.code, unknown.value.code) == (-32002, types.INVALID_PARAMS)
