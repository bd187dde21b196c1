"""Which calls read the task table at their start: those that may wait in it, and no others."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_CLIENT_INFO
from mcp_roundtrip_testing import EVERYTHING
from support.client_requests import FORMS, text
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.messages import META

BREAKS = {"name": "Anthropic/ClaudeAI"}
"""A client that cannot continue a call in rounds without questions."""


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


@pytest.mark.parametrize(
    ("tool", "meta", "reads"),
    [
        *(
            ("asks", {META_CLIENT_CAPABILITIES: capabilities}, 1)
            for capabilities in ({}, FORMS, {"elicitation": {"url": {}}}, {"sampling": {}})
        ),
        ("asks", {META_CLIENT_CAPABILITIES: EVERYTHING}, 0),
        ("plain", {META_CLIENT_CAPABILITIES: {}}, 0),
        ("asks_for_defaults", {META_CLIENT_CAPABILITIES: FORMS}, 0),
        ("asks_for_defaults", {META_CLIENT_CAPABILITIES: FORMS, META_CLIENT_INFO: BREAKS}, 1),
        ("asks_for_defaults", {META_CLIENT_CAPABILITIES: {}}, 1),
    ],
)
def test_only_a_call_that_its_client_may_have_to_repeat_reads_once(tool, meta, reads):
    operations = []
    client = Deployment(server, store=FaultyStore(before=operations.append))
    assert text(client.post_call(tool, meta={**META, **meta})["result"]) == "done"
    assert [each.name for each in operations].count("get") == reads
