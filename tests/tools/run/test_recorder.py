"""The recorder: trees of requests and invocations, what is dropped, and waiting for changes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    MAX_LINES,
    Began,
    Changes,
    Ended,
    Event,
    HttpExchange,
    Note,
    Printed,
    RecordedInvocation,
    ServiceCall,
    Trigger,
)

SIGN = ServiceCall("kms", "Sign", "StateKey", 200, 0, 1)


class Recording(RunRecorder):
    """A recorder with its events, whose clock counts."""

    def __init__(self, **limits: int) -> None:
        ticks = count()
        self.events: list[Event] = []
        super().__init__(self.events.append, now_ms=lambda: next(ticks), **limits)

    def request(self, exchange_id: str, body: bytes = b"") -> None:
        self.begin_exchange(HttpExchange(exchange_id, self.now_ms(), "POST", "/mcp", (), body))

    def respond(self, exchange_id: str) -> None:
        self.end_exchange(exchange_id, 200, (), b"")

    def start(self, invocation_id: str, trigger: Trigger, caller: str | None, payload: bytes = b"{}") -> str:
        given = RecordedInvocation(
            invocation_id, invocation_id, "F", "F-1", True, trigger, caller, 0, payload
        )
        return self.begin_invocation(given)

    def end(self, invocation_id: str, error: str | None = None) -> None:
        self.end_invocation(invocation_id, b"{}", error=error, init_ms=None)

    def line(self, invocation_id: str, text: str) -> None:
        self.add_line(invocation_id, text, function="F", environment_id="F-1")


@pytest.fixture
def recorder() -> Recording:
    return Recording()


def test_a_request_contains_the_invocations_that_it_waited_for(recorder: Recording) -> None:
    recorder.request("request")
    recorder.start("door", "http", "request")
    recorder.start("tool", "invoke", "door")
    recorder.add_service_call("tool", SIGN)
    recorder.line("tool", "asked")
    assert recorder.exchange("request").status is None
    recorder.end("tool")
    recorder.end("door")
    recorder.respond("request")
    found = recorder.exchange("request")
    assert found is not None
    [door] = found.invocations
    [tool] = door.invocations
    assert (found.status, door.id, tool.id, tool.caller) == (200, "door", "tool", "door")
    assert (tool.service_calls, [line.text for line in tool.log_lines]) == ((SIGN,), ["asked"])
    assert [type(event) for event in recorder.events] == [Began, Printed, Ended]
    assert recorder.events[-1] == Ended(found)
    assert recorder.background_invocations() == ()


@pytest.mark.parametrize("trigger", ["async", "retry", "queue", "direct"])
def test_an_invocation_that_nothing_waits_for_is_a_root(recorder: Recording, trigger: Trigger) -> None:
    recorder.request("request")
    recorder.start("worker", trigger, "request")
    recorder.line("worker", "step one")
    recorder.end("worker", "Runtime.ExitError: killed")
    [worker] = recorder.background_invocations()
    assert (worker.caller, worker.failed, worker.error) == ("request", True, "Runtime.ExitError: killed")
    assert recorder.events[2] == Printed("worker", "F", "F-1", worker.log_lines[0])
    assert recorder.events[3] == Ended(worker)
    assert recorder.exchange("request").invocations == ()


def test_a_repeated_invocation_has_the_same_request_id_and_its_own_id(recorder: Recording) -> None:
    assert [recorder.start("a", trigger, None) for trigger in ("async", "retry", "retry")] == [
        "a",
        "a#2",
        "a#3",
    ]
    assert recorder.invocation("a#2").request_id == "a"


def test_the_oldest_ended_trees_are_dropped_first() -> None:
    recorder = Recording(max_trees=3)
    recorder.start("worker", "async", None)
    for name in "abcd":
        recorder.request(name)
        recorder.respond(name)
    assert [found.id for found in recorder.exchanges()] == ["c", "d"]
    assert recorder.invocation("worker") is not None
    recorder.end("worker")
    recorder.request("e")
    assert recorder.invocation("worker") is None


def test_bodies_are_bounded_and_what_happens_in_a_dropped_tree_is_ignored() -> None:
    recorder = Recording(max_bytes=1000)
    recorder.request("a", b"x" * 600)
    recorder.start("in a", "http", "a")
    recorder.request("b", b"x" * 600)
    assert [found.id for found in recorder.exchanges()] == ["b"]
    recorder.add_service_call("in a", SIGN)
    recorder.line("in a", "still printed")
    recorder.end("in a")
    recorder.respond("a")
    assert recorder.exchange("a") is recorder.invocation("in a") is None
    assert [type(event) for event in recorder.events] == [Began, Began, Printed]
    recorder.request("c", b"x" * 300)
    assert len(recorder.exchanges()) == 2


def test_headers_and_calls_of_services_count_too() -> None:
    recorder = Recording(max_bytes=1000)
    recorder.begin_exchange(HttpExchange("a", 0, "POST", "/mcp", (("authorization", "x" * 900),), b""))
    recorder.respond("a")
    recorder.start("b", "async", None)
    for _ in range(3):
        recorder.add_service_call("b", SIGN)
    assert (recorder.exchange("a"), len(recorder.invocation("b").service_calls)) == (None, 3)


def test_an_invocation_keeps_its_newest_lines(recorder: Recording) -> None:
    recorder.start("a", "async", None)
    for number in range(MAX_LINES + 5):
        recorder.line("a", str(number))
    lines = recorder.invocation("a").log_lines
    assert (len(lines), lines[0].text) == (MAX_LINES, "5")


def test_a_reader_gets_what_changed_since_its_last_question(recorder: Recording) -> None:
    assert recorder.wait_after(0, 0) == Changes(0, (), ())
    recorder.request("a")
    recorder.start("worker", "async", None)
    first = recorder.wait_after(0, 0)
    assert (first.exchanges, first.invocations) == (("a",), ("worker",))
    recorder.line("worker", "step")
    second = recorder.wait_after(first.sequence, 0)
    assert (second.exchanges, second.invocations) == ((), ("worker",))
    assert recorder.wait_after(1_000_000, 0).exchanges == ("a",), "a number of an earlier run"


def test_a_reader_waits_for_a_change(recorder: Recording) -> None:
    asked = threading.Event()

    def ask() -> Changes:
        asked.set()
        return recorder.wait_after(0, 10)

    with ThreadPoolExecutor() as workers:
        answer = workers.submit(ask)
        asked.wait(10)
        recorder.request("a")
        assert answer.result(10).exchanges == ("a",)


def test_notes_are_passed_on(recorder: Recording) -> None:
    recorder.note("F restarted")
    assert recorder.events == [Note(0, "F restarted")]


def test_a_listener_that_raises_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def listener(event: Event) -> None:
        raise ZeroDivisionError

    RunRecorder(listener).note("a note")
    assert "ZeroDivisionError" in capsys.readouterr().err
