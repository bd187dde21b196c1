"""Progress and log notifications: each is sent once."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip import Context, UsageError
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.engine.replay import Done
from mcp_roundtrip.protocol.canonical import compact_json
from support.passes import Passes, accept


def reported(call: Passes) -> list[Any]:
    assert call.run is not None
    return [notification["params"] for notification in call.run.notifications.messages]


def test_progress_that_does_not_increase_is_dropped() -> None:
    def body(ctx: Context) -> None:
        for done in (1, 2, 2, 1.5, 3):
            ctx.progress(done, 3)

    call = Passes(body).begun()
    assert [params["progress"] for params in reported(call)] == [1, 2, 3]


def test_no_report_is_sent_twice_across_rounds() -> None:
    def body(ctx: Context) -> None:
        ctx.progress(1, 4, "asking")
        ctx.elicit("q", "?", bool)
        ctx.progress(2, 4, "working")
        ctx.step("s", int)
        ctx.log("info", "made")
        ctx.elicit("r", "?", bool)
        ctx.progress(4, 4)

    call = Passes(body).begun()
    assert [params.get("progress") for params in reported(call)] == [1]
    call()
    assert reported(call) == []
    call(q=accept(True))
    assert [params.get("progress", params.get("data")) for params in reported(call)] == [2, "made"]
    call(r=accept(True))
    assert [params["progress"] for params in reported(call)] == [4]


def test_log_messages_below_the_clients_level_are_not_sent() -> None:
    def body(ctx: Context) -> None:
        ctx.log("debug", 1)
        ctx.log("warning", 2)
        ctx.log("error", {"x": 3}, "db")

    call = Passes(body)
    run = call.make_run()
    run.notifications.log_level = "warning"
    body(Context(run, CallInfo()))
    assert [notification["params"] for notification in run.notifications.messages] == [
        {"level": "warning", "data": 2},
        {"level": "error", "data": {"x": 3}, "logger": "db"},
    ]


def test_without_a_token_and_a_level_nothing_is_sent() -> None:
    call = Passes(lambda ctx: None)
    run = call.make_run()
    run.notifications.log_level = run.notifications.progress_token = None
    Context(run, CallInfo()).progress(1)
    Context(run, CallInfo()).log("emergency", "x")
    assert run.notifications.messages == []


def test_notifications_over_the_limit_are_counted_and_dropped() -> None:
    run = Passes(lambda ctx: None).make_run()
    ctx, size = Context(run, CallInfo()), len(compact_json(note := {"text": "x" * 100}))
    run.notifications.bytes_left = 10 * (size + 100)
    for number in range(1_000):
        ctx.log("info", note)
        ctx.progress(number + 1)
    buffered = run.notifications.messages
    assert len(buffered) + run.notifications.dropped == 2_000
    assert sum(len(compact_json(each)) for each in buffered) <= 10 * (size + 100)
    assert run.notifications.log_fields() == {"notifications_dropped": run.notifications.dropped}


def test_an_unknown_log_level_is_a_usage_error() -> None:
    run = Passes(lambda ctx: None).make_run()
    with pytest.raises(UsageError, match="loud"):
        Context(run, CallInfo()).log("loud", "x")


@pytest.mark.parametrize(
    "report",
    [
        lambda ctx: ctx.log("info", {"at": object()}),
        lambda ctx: ctx.log("info", float("nan")),
        lambda ctx: ctx.progress(float("nan")),
        lambda ctx: ctx.progress("half"),
        lambda ctx: ctx.progress(1, float("inf")),
        lambda ctx: ctx.progress(10**400),
        lambda ctx: ctx.progress(1, -(10**400)),
    ],
)
def test_an_unserializable_notification_is_a_usage_error_for_every_client(report: Any) -> None:
    for wanted in (True, False):
        run = Passes(lambda ctx: None).make_run()
        if not wanted:
            run.notifications.progress_token = run.notifications.log_level = None
        with pytest.raises(UsageError):
            report(Context(run, CallInfo()))


def test_mutating_data_after_a_report_does_not_change_it() -> None:
    data = {"n": 1}

    def body(ctx: Context) -> None:
        ctx.log("info", data)
        data["n"] = 2

    call = Passes(body).begun()
    assert reported(call) == [{"level": "info", "data": {"n": 1}}]


def test_no_report_is_sent_twice_across_checkpoints() -> None:
    def body(ctx: Context) -> None:
        for number in range(4):
            ctx.step(f"step {number}", int)
            ctx.log("info", number)
            ctx.progress(number + 1)

    call = Passes(body, remaining_ms=0)
    seen = []
    while not isinstance(call(), Done):
        seen += reported(call)
    seen += reported(call)
    assert [params.get("data", params.get("progress")) for params in seen] == [0, 1, 1, 2, 2, 3, 3, 4]


def test_internal_entries_of_a_step_do_not_suppress_reports() -> None:
    def body(ctx: Context) -> None:
        ctx.step("work", int)
        ctx.progress(1)

    call = Passes(body)
    call.journal = Journal("run-1", (Entry("work~failed1", Kind.FAILED, 0), Entry("work", Kind.STEP, 0)))
    call()
    assert len(reported(call)) == 1
