"""The application of `mcp-roundtrip new` and `new-tool --tasks`, served as `make run` does."""

import pytest

from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.growth.new_tool import plan_tool
from mcp_roundtrip_tools.new.__main__ import render
from support.clients import Person, answered_on_page, fast_mcp, official
from support.served_application import FRONT_DOOR, Served, serve

pytestmark = pytest.mark.anyio

RESULT = "A-1002 is being packed."


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Yield the application with a tool that becomes a task."""
    folder, lines = tmp_path_factory.mktemp("orders"), list[str]()
    write({folder / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    write(plan_tool(folder, "count_parts", tasks=True))
    with serve(folder / "template.yaml", parameters={"AuthMode": "none"}, log=lines.append) as app:
        yield Served(app.url(FRONT_DOOR), lines)


@pytest.mark.parametrize("connect", [official, fast_mcp], ids=["the official SDK", "FastMCP"])
async def test_the_user_answers_a_form(served, connect):
    async with connect(served.url, person := Person([{"value": "A-1002"}])) as client:
        assert await client.call("order_status", {}) == {"text": RESULT}
    assert person.asked == ["Which order?"]


async def test_the_user_answers_on_the_page(served):
    assert await answered_on_page(served.url, "order_status", "A-1002") == RESULT


async def test_the_tool_with_tasks_becomes_a_task(served):
    async with fast_mcp(served.url, Person([{"value": "words"}])) as client:
        assert await client.call("count_parts", {"text": "Ask before you count."}) == {
            "length": 4,
            "unit": "words",
        }
    assert served.requests("tasks/get") > 0
