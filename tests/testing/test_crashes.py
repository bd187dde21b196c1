"""Tests of tools whose workers are killed."""

import logging
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.errors import StepInterrupted
from mcp_roundtrip_testing import WITH_TASKS, Crash, Player, crashes

server = Server("shop")
SENT: Counter[str] = Counter()
"""Orders by idempotency key. An idempotent API executes each of them once."""
CHARGES: list[str] = []


@pytest.fixture(autouse=True)
def reset_orders():
    SENT.clear()
    CHARGES.clear()


def send(token: str) -> str:
    SENT[token] += 1
    return token


def charge() -> str:
    CHARGES.append("charge")
    return "charged"


@server.tool(task="required")
def order(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=7_200_000)
    token = ctx.step("send", send, ctx.idempotency_key("send"))
    ctx.sleep("pause", 60_000)
    ctx.elicit("sure", "Sure?", bool)
    return ctx.step("confirm", send, token)


@server.tool(task="required")
def pay(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=7_200_000)
    return ctx.step("charge", charge)


@server.tool(task="required")
def pay_once(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=7_200_000)
    try:
        return ctx.step("charge", charge, at_most_once=True)
    except StepInterrupted:
        return "interrupted"


@server.tool(task="optional")
def reserve(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.run_as_task(ttl_ms=7_200_000)
    return ctx.step("charge", send, account, at_most_once=True)


@server.tool
def reserve_in_rounds(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.step("charge", send, account)
    ctx.elicit("sure", "Sure?", bool)
    return account


def play_with_crashes(*, always_replay: bool = False) -> Iterator[Player]:
    for play in crashes(lambda: Player(server, WITH_TASKS, always_replay=always_replay)):
        SENT.clear()
        CHARGES.clear()
        yield play


@pytest.mark.parametrize("always_replay", [False, True])
def test_a_tool_with_an_idempotent_api_has_the_same_result_after_every_crash(always_replay):
    repeated = 0
    for play in play_with_crashes(always_replay=always_replay):
        task = play.call("order").task.wake()
        assert task.question("sure") == "Sure?"
        assert task.answer(sure=True).text in SENT
        assert len(SENT) == 1, "one order for any number of requests"
        assert not play.observer.failures
        repeated += SENT.total() > 2
    assert repeated == 4, "killed or suspended before the result of each step was written"


def test_a_repeated_nonidempotent_step_is_detected():
    def a_test_of_pay() -> None:
        for play in play_with_crashes():
            assert play.call("pay").task.text == "charged"
            assert CHARGES == ["charge"]

    with pytest.raises(AssertionError):
        a_test_of_pay()
    assert CHARGES == ["charge", "charge"]


def test_every_call_of_the_store_kills_twice_and_suspends_and_every_dispatch_is_lost(caplog):
    caplog.set_level(logging.WARNING)
    players = []
    for play in play_with_crashes():
        _ = play.call("pay").task
        players.append(play)
    # asyncio may log about coroutines of earlier tests.
    messages = [
        each.getMessage() for each in caplog.records if each.name.startswith("mcp_roundtrip_testing.")
    ]
    calls = ["update M", "query", "get M", "put_new J#charge", "update M"]
    assert players[0].workers.calls == len(calls)
    killed = [
        rf"{loss} call {number} .*\b{re.escape(name)}$"
        for number, name in enumerate(calls)
        for loss in ("killed before", "killed after", "suspended before")
    ]
    assert all(re.search(each, message) for each, message in zip(killed, messages[:-1], strict=True))
    assert messages[-1].startswith("dispatch 0 ")
    assert len(players) == 1 + len(messages)


def test_a_call_becomes_one_task_whichever_response_is_lost(caplog):
    players = []
    for play in play_with_crashes():
        task = play.call("reserve", account="acc-1").task
        assert task.detailed["result"]["isError"] or task.text == "acc-1"
        assert SENT.total() <= 1
        players.append(play)
    assert players[-1].lost_response == players[0].repeatable - 1 == 0
    assert "tools/call was lost" in caplog.text


def test_an_effect_between_rounds_is_seen_to_be_repeated():
    effects = []
    for play in play_with_crashes():
        assert play.call("reserve_in_rounds", account="acc-1", sure=True).text == "acc-1"
        effects.append(SENT.total())
    assert effects == [1, 2, 1], "nothing is lost, the response to the first answer, that to the second"


@pytest.mark.parametrize(("is_retried", "dispatches"), [(True, 1), (False, 2)])
def test_lambdas_retry_or_a_poll_replaces_a_killed_worker(is_retried, dispatches):
    play = Player(server, WITH_TASKS)
    play.workers.crash = Crash(3, is_done=True, is_retried=is_retried)
    began = play.clock()
    assert play.call("pay").task.text == "charged"
    assert CHARGES == ["charge"]
    assert play.clock() - began == 61 or not is_retried
    assert play.table.dispatcher.count == dispatches


@pytest.mark.parametrize(
    ("tool", "result", "charges"), [("pay", "charged", 2), ("pay_once", "interrupted", 1)]
)
def test_a_suspended_worker_continues_after_another_one_took_its_task(tool, result, charges):
    play = Player(server, WITH_TASKS)
    before_the_result = 3 if tool == "pay" else 4
    play.workers.crash = Crash(before_the_result, is_done=False, is_suspended=True)
    assert play.call(tool).task.text == result
    assert len(CHARGES) == charges
    assert not play.observer.failures
    assert "lease_lost" in [event for event, _ in play.observer.events]


def test_a_test_in_which_nothing_can_be_lost_fails_with_a_message():
    with pytest.raises(AssertionError, match="no worker"):
        list(play_with_crashes())


def test_a_nondeterministic_test_fails_with_a_message():
    tools = iter(["order"])

    def a_nondeterministic_test() -> None:
        for play in play_with_crashes():
            _ = play.call(next(tools, "pay")).task

    with pytest.raises(AssertionError, match="in this repetition"):
        a_nondeterministic_test()
