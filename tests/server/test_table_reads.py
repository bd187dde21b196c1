"""Which calls read the task table at their start: those that may wait in it, and no others."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_CLIENT_INFO
from mcp_roundtrip_testing import EVERYTHING
from support.client_requests import FORMS, text
from support.deployment import Deployment
from support.faulty_store import FaultyStore, Operation
from support.messages import META

BREAKS = {**META, META_CLIENT_CAPABILITIES: FORMS, META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI"}}


def reads(capabilities, tool="asks", **params):
    """Return how often a call that needs no answer reads the table."""
    server = Server("reads")

    @server.tool
    def asks(ctx: Context) -> str:
        return "done"

    @server.tool(channels=("default",))
    def asks_for_defaults(ctx: Context) -> str:
        return "done"

    @server.tool
    def plain() -> str:
        return "done"

    operations: list[Operation] = []
    client = Deployment(server, capabilities=capabilities, store=FaultyStore(before=operations.append))
    assert text(client.post_call(tool, **params)["result"]) == "done"
    return [each.name for each in operations].count("get")


@pytest.mark.parametrize("capabilities", [{}, FORMS, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_call_that_a_client_may_have_to_repeat_reads_once(capabilities):
    assert reads(capabilities) == 1


def test_a_call_of_a_client_that_shows_all_questions_reads_nothing():
    assert reads(EVERYTHING) == 0


def test_a_tool_without_a_context_reads_nothing():
    assert reads({}, "plain") == 0


def test_a_tool_whose_questions_never_wait_reads_nothing_unless_its_client_cannot_continue():
    assert reads(FORMS, "asks_for_defaults") == 0
    assert reads(FORMS, "asks_for_defaults", meta=BREAKS) == 1
    assert reads({}, "asks_for_defaults") == 1
