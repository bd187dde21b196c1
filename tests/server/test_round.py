"""`tools/call`, round by round, from the view of a client."""

from contextlib import suppress
from typing import Any

import pytest

from mcp_roundtrip import Context, Drift, Server
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.server.errors import INVALID_STATE
from mcp_roundtrip_testing import Player
from support.deployment import Deployment
from support.servers import server_of

server = Server("test")


@server.tool
def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool
def forever(ctx: Context) -> None:
    ctx.elicit_url("never", "Sign in", "https://x.test/page?mcp_link=token#top", done=lambda: False)


PAGES = set()


@server.tool
def page_and_a_step(ctx: Context) -> str:
    ctx.elicit_url(
        "page", "Pay", "https://x.test", done=lambda: any(ctx._run.services.clock() >= at for at in PAGES)
    )
    return ctx.step("receipt", lambda: "done")


@server.tool
def reports(ctx: Context) -> str:
    ctx.progress(1, 2)
    ctx.log("info", "half way")
    return "done"


def player(**options):
    return Player(server, **options)


def player_of(*tools, **options):
    return Player(server_of(*tools), **options)


def test_arguments_may_be_absent_or_null():
    for given in ({}, {"arguments": None}):
        assert player().request("tools/call", name="reports", **given)["result"]["isError"] is False


def test_an_endless_call_ends_before_clients_give_up():
    rounds = [player().call("forever")]
    began = rounds[0].player.clock()
    while not rounds[-1].failed:
        rounds.append(rounds[-1].respond({"never": {"action": "accept"}}))
        assert len(rounds) < 20
    assert len(rounds) == 11, "clients go through ten rounds, and stop at the next question"
    assert rounds[-1].result["resultType"] == "complete"
    assert rounds[0].player.clock() - began > 240
    assert "has not finished at https://x.test/page. Once" in rounds[-1].text, (
        "the model does not get the token of a link"
    )
    assert "call the tool again with the same arguments: it may ask for another page." in rounds[-1].text


@pytest.mark.parametrize("max_rounds", [1, 5, 9])
def test_waiting_uses_at_most_the_ten_rounds_of_clients(max_rounds):
    asked = player(remaining_ms=0, ports={"max_rounds": max_rounds}).call("forever")
    for _ in range(9):
        assert asked.asked
        asked = asked.respond({"never": {"action": "accept"}})
    assert asked.asked
    assert asked.respond({"never": {"action": "accept"}}).failed


def test_a_page_completed_at_the_end_of_the_last_round_completes_the_call():
    PAGES.clear()
    asked = player().call("page_and_a_step")
    for _ in range(9):
        asked = asked.answer(page=True)
    finished_at = asked.player.clock() + 26.5
    PAGES.add(finished_at)
    assert asked.answer(page=True).text == "done"
    assert asked.player.clock() >= finished_at, "with too little time left for a step in any other round"


def test_a_wait_beyond_the_flow_is_an_error_that_names_the_page():
    asked = player().call("forever")
    asked.player.clock.advance(599)
    for _ in range(8):
        asked = asked.respond({"never": {"action": "accept"}})
        asked.player.clock.advance(400)
    assert asked.failed
    assert "https://x.test" in asked.text


def test_a_state_is_bound_to_the_arguments():
    def confirm(ctx: Context, amount: float) -> float:
        ctx.elicit("ok", f"Pay {amount:g}?", bool)
        return amount

    playing = player_of(confirm)
    state = playing.call("confirm", {"amount": 2}).state
    yes = {"ok": {"action": "accept", "content": {"value": True}}}
    assert playing.send("confirm", {"amount": 200}, yes, state).error["message"] == INVALID_STATE
    assert playing.send("confirm", {"amount": "2"}, yes, state).error["message"] == INVALID_STATE
    assert playing.send("confirm", {"amount": 2.0}, yes, state).structured == 2


def test_a_key_service_error_for_a_link_is_an_internal_error_even_if_the_tool_catches_it():
    def link(ctx: Context) -> str:
        with suppress(Exception):
            return ctx.signed_link("link", "https://x.test")
        return "continued"

    def failing() -> Any:
        raise KeyServiceError("ThrottlingException")

    client = Deployment(server_of(link), user=None, replaced_ports={"links": failing})
    assert client.call_error("link")["code"] == -32603
    assert client.failures[0] == "state_unavailable"


def test_drift_names_the_key_and_the_steps_in_the_error_and_the_key_in_the_log():
    def build(message: str) -> Server:
        def tool(ctx: Context) -> str:
            ctx.elicit("which", message, str)
            ctx.step("reserve", int)
            ctx.step("pay", int)
            return ctx.elicit("more", "More?", str)

        return server_of(tool)

    builds = [build("Which?"), build("Which?"), build("Which one?")]
    playing = Player(lambda: builds.pop(0))
    drifted = playing.call("tool").answer(which="a").answer(more="b")
    assert drifted.error["code"] == -32603
    assert "'which'" in drifted.error["message"]
    assert "message" in drifted.error["message"]
    assert "will run again then: reserve, pay." in drifted.error["message"]
    assert drifted.error["data"] == {"changedKey": "which"}
    ((event, error),) = playing.observer.failures
    assert event == "drift"
    assert isinstance(error, Drift)
