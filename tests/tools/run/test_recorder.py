"""The recorder: roots with their invocations, what is dropped, and waiting for changes."""

from itertools import count

import pytest

from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    MAX_LINES,
    Event,
    HttpExchange,
    Note,
    caused_by,
)


class Recording(RunRecorder):
    """A recorder with its events, whose clock counts."""

    def __init__(self, **limits):
        ticks = count()
        self.events: list[Event] = []
        super().__init__(self.events.append, now_ms=lambda: next(ticks), **limits)

    def request(self, exchange_id):
        exchange = HttpExchange(exchange_id, self.now_ms(), "POST", "/mcp", (), b"")
        self.begin_exchange(exchange)
        return exchange

    def respond(self, exchange):
        self.end_exchange(exchange, 200, (), b"")

    def start(self, request_id, trigger, caller):
        with caused_by(trigger, caller):
            return self.begin_invocation(
                "F", b"{}", request_id, environment_id="F-1", is_new_environment=True
            )

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
