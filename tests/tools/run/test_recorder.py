"""The recorder: roots with their invocations, what is dropped, and waiting for changes."""

from itertools import count

import pytest

from mcp_roundtrip_tools.run.observation.recorder import MAX_LINES, RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    Event,
    HttpExchange,
    Note,
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


def test_a_listener_that_raises_fails_nothing(capsys):
    def listener(event: Event) -> None:
        raise ZeroDivisionError

    found: list[Event] = []
    RunRecorder(listener, found.append, now_ms=lambda: 0).note("a note")
    assert found == [Note(0, "a note")]
    assert "ZeroDivisionError" in capsys.readouterr().err
