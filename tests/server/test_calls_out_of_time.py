"""What becomes of a call that runs out of time, by what its client can follow."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, META_CLIENT_INFO, PROTOCOL_VERSION
from mcp_roundtrip.tasks.lease import MARGIN_MS
from mcp_roundtrip_testing import EVERYTHING, WITH_TASKS, FakeClock, Player
from mcp_roundtrip_testing.task_table import MemoryStore
from support.deployment import Deployment
from support.messages import META

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


def test_a_round_without_questions_has_an_empty_member_for_them():
    """Without the member, the Go SDK takes the round for the result of the call."""
    message = slow(EVERYTHING, {}, FOLLOWS).request("tools/call", name="work", arguments={})
    assert message["result"]["resultType"] == "input_required"
    assert message["result"]["inputRequests"] == {}


STEP_S = 2.5
STEPS = 24

server = Server("slow")
clock = FakeClock()
ran = []


def work(number: int) -> int:
    clock.advance(STEP_S)
    ran.append(number)
    return number


@server.tool
def long_work(ctx: Context) -> int:
    """A minute of steps."""
    for number in range(STEPS):
        ctx.step(f"step-{number}", work, number)
    return len(ran)


@pytest.fixture(params=[PROTOCOL_VERSION, LEGACY_VERSION], ids=["claude.ai", "2025-11-25"])
def deployment(request, monkeypatch):
    monkeypatch.setattr("support.client_requests.META", META | BREAKS)
    ran.clear()
    return Deployment(server, clock=clock, capabilities={}, version=request.param)


def play(deployment, **arguments):
    """Make the call until it ends; return the texts before the result."""
    texts = []
    while True:
        response = deployment.text("long_work", **arguments)
        if response == str(STEPS):
            return texts
        texts.append(response)
        assert len(texts) < 10


def test_a_minute_of_steps_ends_after_several_calls_and_each_step_runs_once(deployment):
    texts = play(deployment)
    assert ran == list(range(STEPS))
    assert len(texts) >= 2
    assert all("it continues where it stopped" in text for text in texts)


class LeaseStore(MemoryStore):
    """A store that records how long each lease lasts that a request claims or renews."""

    def __init__(self):
        super().__init__()
        self.claimed, self.renewed = [], []

    def update(self, pk, sk, change):
        if "lu" in change.set:
            leases = self.claimed if "lo" in change.set else self.renewed
            leases.append(change.set["lu"] - round(clock() * 1_000))
        return super().update(pk, sk, change)


def test_the_lease_lasts_as_long_as_the_request_and_is_not_renewed(deployment):
    store = LeaseStore()
    play(deployment.by(store=store))
    assert len(store.claimed) >= 2
    assert set(store.claimed) == {deployment.round_ms + MARGIN_MS}
    assert store.renewed == []
