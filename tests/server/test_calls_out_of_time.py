"""What becomes of a call that runs out of time, by what its client can follow."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO, TASKS_EXTENSION, UI_EXTENSION
from mcp_roundtrip.server.round import META_PARKED_CALL
from mcp_roundtrip_testing import EVERYTHING, WITH_TASKS, FakeClock, Player

BREAKS = {META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}}
FOLLOWS = {META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI-lookalike", "version": "1.0.0"}}

ADA = {"jwt": {"claims": {"iss": "https://id", "sub": "ada"}}}
TASKS_ONLY = {"extensions": {TASKS_EXTENSION: {}}}
ANSWERS_NONE = [{}, {"elicitation": None}, {"extensions": {UI_EXTENSION: {}}}, TASKS_ONLY]


NO_OPTIONS = {}


def serving(body, **options):
    server = Server("long")
    server.tool(name="work", **options)(body)
    return server


def six_steps(clock):
    """Return a tool of six steps that take ten seconds each; a request has 29."""

    def work(ctx: Context) -> int:
        for number in range(6):
            ctx.step(f"part {number}", clock.advance, 10)
        return 6

    return work


def slow(capabilities=EVERYTHING, tool=NO_OPTIONS, **given):
    """Return a client of that tool, which has these options."""
    clock = FakeClock()
    return Player(serving(six_steps(clock), **tool), capabilities, clock=clock, **given)


def signed_in(capabilities, **tool):
    """Return a client whose caller has signed in, so that its calls can be parked."""
    ports = {"auth": EventAuthenticator(AuthMode.JWT)}
    return slow(capabilities, {"channels": (), **tool}, ports=ports, authorizer=ADA)


def rounds(player):
    """Return the outcomes of all calls."""
    completed = [fields for event, fields in player.observer.events if event == "request_completed"]
    return [fields["outcome"] for fields in completed if "outcome" in fields]


@pytest.mark.parametrize(
    ("meta", "capabilities", "tool", "expected"),
    [
        (FOLLOWS, EVERYTHING, {}, ["checkpoint", "complete"]),
        (FOLLOWS, WITH_TASKS, {"task": "optional"}, ["checkpoint", "complete"]),
        (BREAKS, EVERYTHING, {}, ["complete"]),
        (BREAKS, WITH_TASKS, {"task": "optional"}, ["task"]),
    ],
    ids=["a round", "a round although it may become a task", "all the time there is", "a task"],
)
def test_a_client_gets_a_round_without_questions_unless_it_breaks_on_such_rounds(
    meta, capabilities, tool, expected
):
    player = slow(capabilities, tool, meta=meta)
    played = player.call("work")
    result = played.task.result if expected == ["task"] else played.result
    assert result["structuredContent"] == 6
    assert rounds(player) == expected


@pytest.mark.parametrize(("tool", "client"), [({}, WITH_TASKS), ({"task": "optional"}, EVERYTHING)])
def test_a_call_that_cannot_continue_ends_in_an_error_that_names_who_could_wait(tool, client):
    def insatiable(ctx: Context) -> str:
        ctx.step("one", lambda: None)
        ctx.checkpoint(needs_ms=float("inf"))
        return "done"

    player = Player(serving(insatiable, **tool), client, meta=BREAKS)
    ended = player.call("work")
    assert ended.failed
    assert "2026-07-28" in ended.text
    assert rounds(player) == ["out_of_time"]


@pytest.mark.parametrize("capabilities", ANSWERS_NONE, ids=str)
def test_a_client_that_answers_none_calls_again(capabilities):
    player = signed_in(capabilities)
    first = player.send_round("tools/call", {"name": "work", "arguments": {}}, None, None)
    assert not first.failed
    assert first.result["_meta"][META_PARKED_CALL] == {"status": "working"}
    assert "structuredContent" not in first.result
    second = player.send_round("tools/call", {"name": "work", "arguments": {}}, None, None)
    assert second.structured == 6
    assert META_PARKED_CALL not in second.result["_meta"]
    assert rounds(player) == ["parked", "complete"]
