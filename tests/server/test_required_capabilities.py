"""What a tool requires of its client, and the channels that take the place of a capability."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import Player
from support.deployment import legacy

RAN = []


def make_server(channels):
    server = Server("x")

    @server.tool(requires=["elicitation.form"], channels=channels)
    def size(ctx: Context) -> str:
        RAN.append("size")
        return f"{ctx.elicit('vcpus', 'How many CPUs?', int)} CPUs"

    @server.tool(requires=["sampling"], channels=channels)
    def summarize(ctx: Context) -> str:
        return ctx.sample("summary", "Summarize.", max_tokens=10).text

    server.tool(name="never_asks", requires=["elicitation.form"])(lambda: "done")
    return server


def test_a_channel_that_reaches_the_user_is_as_good_as_the_clients_own_elicitation():
    server = make_server(("model",))
    assert Player(server, client="chatgpt").call("size", vcpus=4).text == "4 CPUs"
    assert Player(server, client="codex").call("size", vcpus=4).text == "4 CPUs"
    error = Player(server, client="chatgpt").call("never_asks").error
    assert error["code"] == -32021, "it has no context, so it has no channels"


@pytest.mark.parametrize("channels", [(), ("default",)])
def test_without_such_a_channel_the_call_is_refused_before_the_tool_runs(channels):
    RAN.clear()
    error = Player(make_server(channels), client="chatgpt").call("size").error
    assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, {"elicitation": {"form": {}}})
    assert "elicitation.form" in legacy(make_server(channels)).error_text("size")
    assert RAN == []


def test_no_channel_takes_the_place_of_the_clients_model():
    error = Player(make_server(("model",)), client="chatgpt").call("summarize").error
    assert error["data"]["requiredCapabilities"] == {"sampling": {}}
