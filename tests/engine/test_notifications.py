"""Progress and log notifications: each is sent once."""

from typing import Any

import pytest

from mcp_roundtrip import Context, UsageError
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.protocol.strict_json import compact_json
from support.passes import Passes, accept


def reported(call: Passes) -> list[Any]:
    assert call.run is not None
    return [notification["params"] for notification in call.run.notifications.messages]


def context(log_level: str | None = "debug", token: str | None = "token") -> tuple[Context, Any]:
    """Return a context, and what is reported through it to a client with this level and token."""
    run = Passes(print).make_run()
    run.notifications.log_level, run.notifications.progress_token = log_level, token
    return Context(run, CallInfo()), run.notifications


def test_progress_that_does_not_increase_is_dropped():
    ctx, sent = context()
    for done in (1, 2, 2, 1.5, 3):
        ctx.progress(done, 3)
    assert [each["params"]["progress"] for each in sent.messages] == [1, 2, 3]


def test_only_log_messages_of_the_clients_level_are_sent_unchanged():
    ctx, sent = context("warning")
    data = {"x": 3}
    ctx.log("debug", 1)
    ctx.log("warning", 2)
    ctx.log("error", data, "db")
    data["x"] = 4
    assert [each["params"] for each in sent.messages] == [
        {"level": "warning", "data": 2},
        {"level": "error", "data": {"x": 3}, "logger": "db"},
    ]


def test_without_a_token_and_a_level_nothing_is_sent():
    ctx, sent = context(None, None)
    ctx.progress(1)
    ctx.log("emergency", "x")
    assert sent.messages == []


def test_no_report_is_sent_twice_across_rounds():
    def body(ctx: Context) -> None:
        ctx.progress(1, 4, "asking")
        ctx.elicit("q", "?", bool)
        ctx.progress(2, 4, "working")
        ctx.step("s", int)
        ctx.checkpoint(needs_ms=1e9)
        ctx.log("info", "made")
        ctx.elicit("r", "?", bool)
        ctx.progress(4, 4)

    call = Passes(body).begun()
    assert [params.get("progress") for params in reported(call)] == [1]
    call()
    assert reported(call) == []
    call(q=accept(True))
    assert [params.get("progress") for params in reported(call)] == [2]
    call()
    assert [params.get("data") for params in reported(call)] == ["made"]
    call(r=accept(True))
    assert reported(call) == [{"progressToken": "token", "progress": 4, "total": 4}]


def test_notifications_over_the_limit_are_counted_and_dropped():
    ctx, sent = context()
    note = {"text": "x" * 100}
    sent.bytes_left = limit = 10 * (len(compact_json(note)) + 100)
    for number in range(1_000):
        ctx.log("info", note)
        ctx.progress(number + 1)
    assert len(sent.messages) + sent.dropped == 2_000
    assert sum(len(compact_json(each)) for each in sent.messages) <= limit
    assert sent.log_fields() == {"notifications_dropped": sent.dropped}


@pytest.mark.parametrize(
    "report",
    [
        lambda ctx: ctx.log("loud", "x"),
        lambda ctx: ctx.log("info", float("nan")),
        lambda ctx: ctx.progress(float("nan")),
        lambda ctx: ctx.progress(1, float("inf")),
        lambda ctx: ctx.progress(10**400),
        lambda ctx: ctx.progress(True),
        lambda ctx: ctx.progress(1, -(10**400)),
    ],
)
@pytest.mark.parametrize("wanted", [("debug", "token"), (None, None)])
def test_an_invalid_notification_is_a_usage_error_for_every_client(report, wanted):
    with pytest.raises(UsageError):
        report(context(*wanted)[0])


def test_internal_entries_of_a_step_do_not_suppress_reports():
    def body(ctx: Context) -> None:
        ctx.step("work", int)
        ctx.progress(1)

    call = Passes(body)
    call.journal = Journal("run-1", (Entry("work~failed1", Kind.FAILED, 0), Entry("work", Kind.STEP, 0)))
    call()
    assert len(reported(call)) == 1
