"""Questions on a page or in a view reach only their caller, behind each event source and AuthMode."""

from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from support.deployment import Deployment
from support.event_sources import GATEWAYS, HTTP_SOURCES
from support.question_page import QuestionPage
from support.task_tools import ran, run_step

BEHIND = {
    AuthMode.NONE: HTTP_SOURCES,
    AuthMode.BEARER: HTTP_SOURCES,
    AuthMode.JWT: ("http_api", *GATEWAYS),
    AuthMode.LAMBDA: ("http_api", *GATEWAYS),
    AuthMode.IAM: ("http_api", "function_url", *GATEWAYS),
}
"""The event sources that can identify callers in this way."""

# The session id identifies an anonymous caller, and 2026-07-28 has no sessions.
DEPLOYMENTS = [
    pytest.param({"source": source, "mode": mode, "version": version}, id=f"{source}-{mode}-{version}")
    for mode in AuthMode
    for source in BEHIND[mode]
    for version in ((LEGACY_VERSION,) if mode is AuthMode.NONE else (PROTOCOL_VERSION, LEGACY_VERSION))
]

server = Server("shop")


@server.tool
def order(ctx: Context, item: str) -> dict[str, Any]:
    count = ctx.elicit("count", f"How many {item}?", int)
    ctx.step("charge", run_step, f"charged {count}")
    return {"ordered": count}


def token_of(caller):
    return caller.token(caller.text("order", item="tea"))


@pytest.mark.parametrize("deploy", DEPLOYMENTS)
def test_a_link_answers_the_call_of_the_caller_who_got_it_and_no_other(deploy, through_door):
    alice = Deployment(server, through_door=through_door, capabilities={}, **deploy).connected()
    eve = alice.by(user="eve").connected()
    page = QuestionPage(alice)
    link, other = token_of(alice), token_of(eve)
    assert other != link
    assert "Thank you" in page.answer(link, "3")
    assert token_of(eve) == other, "the answer is not hers"
    assert alice.call("order", item="tea")["structuredContent"] == {"ordered": 3}
    assert token_of(eve) == other, "the result is not hers"
    assert ran == ["charged 3"]
    page.answer(other, "4")
    assert eve.call("order", item="tea")["structuredContent"] == {"ordered": 4}
    assert ran == ["charged 3", "charged 4"]


@pytest.mark.parametrize("mode", [mode for mode in AuthMode if mode is not AuthMode.NONE])
def test_the_session_of_another_user_shows_neither_their_link_nor_their_result(mode):
    alice = Deployment(server, source="http_api", mode=mode, version=LEGACY_VERSION, capabilities={})
    alice.initialize()
    link = token_of(alice)
    thief = alice.by(user="eve")
    assert thief.session_id == alice.session_id
    assert token_of(thief) != link
    QuestionPage(alice).answer(link, "3")
    assert token_of(thief) != link
    assert ran == []
    assert alice.call("order", item="tea")["structuredContent"] == {"ordered": 3}
    assert token_of(thief) != link
