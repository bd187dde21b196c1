"""Calls that need more time than a request has, of clients that cannot continue them in rounds."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.lease import MARGIN_MS
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.messages import META
from support.parked_deployment import ParkedDeployment

STEP_S = 2.5
STEPS = 24
CLAUDE = {"io.modelcontextprotocol/clientInfo": {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}}

server = Server("slow")
deployments: list[ParkedDeployment] = []
ran: list[int] = []


def work(number: int) -> int:
    deployments[-1].clock.advance(STEP_S)
    ran.append(number)
    return number


@server.tool
def long_work(ctx: Context, asks: bool = False) -> int:
    """A minute of steps, and a question after the first of them if it asks."""
    for number in range(STEPS):
        ctx.step(f"step-{number}", work, number)
        if asks and number == 0:
            ctx.elicit("sure", "Go on?", bool)
    return len(ran)


@pytest.fixture(params=["claude.ai", "2025-11-25"])
def deployment(request, monkeypatch):
    monkeypatch.setattr("support.parked_deployment.META", META | CLAUDE)
    ran.clear()
    deployments.append(ParkedDeployment(server, is_legacy=request.param == "2025-11-25"))
    return deployments[-1]


def play(deployment, **arguments):
    """Make the call until it ends; return the texts before the result."""
    texts = []
    while True:
        response = deployment.call("long_work", **arguments)
        if response == str(STEPS):
            return texts
        texts.append(response)
        assert len(texts) < 10


def test_a_minute_of_steps_ends_after_several_calls_and_each_step_runs_once(deployment):
    texts = play(deployment)
    assert ran == list(range(STEPS))
    assert len(texts) >= 2
    assert all("it continues where it stopped" in text for text in texts)


def test_each_request_ends_in_its_time(deployment):
    began = deployment.clock()
    deployment.call("long_work")
    assert deployment.clock() - began < deployment.round_ms / 1000
    assert deployment.outcome == "parked"


def test_a_question_in_between_is_asked_on_the_page(deployment):
    deployment.answer(deployment.call("long_work", asks=True), sure=True)
    play(deployment, asks=True)
    assert ran == list(range(STEPS))


@pytest.mark.parametrize("killed_call", range(24))
def test_a_request_that_crashes_repeats_at_most_the_step_that_was_not_recorded(deployment, killed_call):
    deployment.call("long_work")
    crashing = CrashingStore(deployment.store, killed_call, is_done=False)
    with pytest.raises(WorkerKilled):
        deployment.call("long_work", store=crashing)
    deployment.clock.advance(40)  # the lease
    for _ in range(3):
        deployment.call("long_work")
    assert sorted(set(ran)) == list(range(STEPS))
    assert len(ran) - STEPS == crashing.killed_at.startswith("put_new J#")


class LeaseStore(MemoryStore):
    """A store that records how long each lease lasts that a request claims or renews."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.claimed, self.renewed = clock, [], []

    def update(self, pk, sk, change):
        if "lu" in change.set:
            leases = self.claimed if "lo" in change.set else self.renewed
            leases.append(change.set["lu"] - round(self.clock() * 1_000))
        return super().update(pk, sk, change)


def test_the_lease_lasts_as_long_as_the_request_and_is_not_renewed(deployment):
    deployment.store = deployment.table.store = LeaseStore(deployment.clock)
    play(deployment)
    assert len(deployment.store.claimed) >= 2
    assert set(deployment.store.claimed) == {deployment.round_ms + MARGIN_MS}
    assert deployment.store.renewed == []
