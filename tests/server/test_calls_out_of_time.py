"""What becomes of a call that runs out of time, by what its client can follow."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip_testing import EVERYTHING, WITH_TASKS, FakeClock, Player

BREAKS = {META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}}
FOLLOWS = {META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI-lookalike", "version": "1.0.0"}}


def slow(capabilities, tool, meta):
    """Return a client of a tool of six steps that take ten seconds each; a request has 29."""
    server, clock = Server("long"), FakeClock()

    @server.tool(**tool)
    def work(ctx: Context) -> int:
        for number in range(6):
            ctx.step(f"part {number}", clock.advance, 10)
        return 6

    return Player(server, capabilities, clock=clock, meta=meta)


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
    player = slow(capabilities, tool, meta)
    played = player.call("work")
    result = played.task.result if expected == ["task"] else played.result
    assert result["structuredContent"] == 6
    completed = [fields for event, fields in player.observer.events if event == "request_completed"]
    assert [fields["outcome"] for fields in completed if "outcome" in fields] == expected
