"""The recorder: roots with their invocations, what is dropped, and waiting for changes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from mcp_roundtrip_tools.run.observation.recorder import MAX_LINES, RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Note,
    Printed,
    ServiceCall,
    caused_by,
)

SIGN = ServiceCall("kms", "Sign", "StateKey", 200, 0, 1)


class Recording(RunRecorder):
    """A recorder with its events, whose clock counts."""

    def __init__(self, **limits):
        ticks = count()
        self.events: list[Event] = []
        super().__init__(self.events.append, now_ms=lambda: next(ticks), **limits)

    def request(self, exchange_id, body=b"", headers=()):
        exchange = HttpExchange(exchange_id, self.now_ms(), "POST", "/mcp", headers, body)
        self.begin_exchange(exchange)
        return exchange

    def respond(self, exchange):
        self.end_exchange(exchange, 200, (), b"")

    def start(self, request_id, trigger, caller):
        with caused_by(trigger, caller):
            return self.begin_invocation("F", b"{}", request_id)

    def roots(self):
        return [root.id for root in self.wait_after(0, 0)[1]]

    def end(self, invocation, error=None):
        self.end_invocation(invocation, b"{}", error=error, init_ms=None)


@pytest.fixture
def recorder():
    return Recording()


def test_a_request_contains_the_invocations_that_it_waited_for(recorder):
    request = recorder.request("request")
    door = recorder.start("door", "http", "request")
    tool = recorder.start("tool", "invoke", "door")
    recorder.add_service_call(tool, SIGN)
    recorder.add_line(tool, "asked")
    assert request.status is None
    recorder.end(tool)
    recorder.end(door)
    recorder.respond(request)
    assert (request.invocations, door.invocations, request.status) == ([door], [tool], 200)
    assert (tool.service_calls, [line.text for line in tool.log_lines]) == ([SIGN], ["asked"])
    assert recorder.events == [Printed(tool, tool.log_lines[0]), Ended(request)]
    assert recorder.roots() == ["request"]
    assert recorder.background_invocations() == ()


@pytest.mark.parametrize("trigger", ["async", "retry", "queue", "direct"])
def test_an_invocation_that_nothing_waits_for_is_a_root(recorder, trigger):
    request = recorder.request("request")
    worker = recorder.start("worker", trigger, "request")
    recorder.add_line(worker, "step one")
    recorder.end(worker, "Runtime.ExitError: killed")
    assert recorder.background_invocations() == (worker,)
    assert worker.failed
    assert recorder.events == [Printed(worker, worker.log_lines[0]), Ended(worker)]
    assert request.invocations == []


def test_a_repeated_invocation_has_the_same_request_id_and_its_own_id(recorder):
    started = [recorder.start("a", trigger, None) for trigger in ("async", "retry", "retry")]
    assert [each.id for each in started] == ["a", "a#2", "a#3"]
    assert recorder.invocation("a#2") is started[1]


def test_the_oldest_ended_roots_are_dropped_first():
    recorder = Recording(max_roots=3)
    worker = recorder.start("worker", "async", None)
    for name in "abcd":
        recorder.respond(recorder.request(name))
    assert recorder.roots() == ["worker", "c", "d"]
    assert recorder.invocation("worker") is worker
    recorder.end(worker)
    recorder.request("e")
    assert recorder.invocation("worker") is None


def test_bodies_are_bounded_and_what_happens_below_a_dropped_root_is_not_counted():
    recorder = Recording(max_bytes=1000)
    first = recorder.request("a", b"x" * 600)
    dropped = recorder.start("in a", "http", "a")
    recorder.request("b", b"x" * 600)
    recorder.add_service_call(dropped, SIGN)
    recorder.add_line(dropped, "x" * 600)
    recorder.end(dropped)
    recorder.respond(first)
    assert recorder.exchange("a") is recorder.invocation("in a") is None
    recorder.request("c", b"x" * 300)
    assert recorder.roots() == ["b", "c"]


def test_headers_and_calls_of_services_count_too():
    recorder = Recording(max_bytes=1000)
    recorder.respond(recorder.request("a", headers=(("authorization", "x" * 900),)))
    second = recorder.start("b", "async", None)
    for _ in range(3):
        recorder.add_service_call(second, SIGN)
    assert (recorder.exchange("a"), recorder.invocation("b")) == (None, second)


def test_an_invocation_keeps_its_newest_lines(recorder):
    invocation = recorder.start("a", "async", None)
    for number in range(MAX_LINES + 5):
        recorder.add_line(invocation, str(number))
    assert (len(invocation.log_lines), invocation.log_lines[0].text) == (MAX_LINES, "5")


def test_a_reader_gets_what_changed_since_its_last_question(recorder):
    assert recorder.wait_after(0, 0) == (0, [])
    request = recorder.request("a")
    worker = recorder.start("worker", "async", None)
    sequence, changed = recorder.wait_after(0, 0)
    assert changed == [request, worker]
    recorder.add_line(worker, "step")
    assert recorder.wait_after(sequence, 0)[1] == [worker]
    assert recorder.wait_after(1_000_000, 0)[1] == [request, worker], "a number of an earlier run"


def test_a_reader_waits_for_a_change(recorder):
    asked = threading.Event()

    def ask() -> list[str]:
        asked.set()
        return [root.id for root in recorder.wait_after(0, 10)[1]]

    with ThreadPoolExecutor() as workers:
        answer = workers.submit(ask)
        asked.wait(10)
        recorder.request("a")
        assert answer.result(10) == ["a"]


def test_a_listener_that_raises_fails_nothing(capsys):
    def listener(event: Event) -> None:
        raise ZeroDivisionError

    found: list[Event] = []
    RunRecorder(listener, found.append, now_ms=lambda: 0).note("a note")
    assert found == [Note(0, "a note")]
    assert "ZeroDivisionError" in capsys.readouterr().err
