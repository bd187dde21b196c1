from itertools import count

import pytest

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import MAX_LINES, Event, HttpExchange, Note, caused_by


@pytest.fixture
def recorder():
    ticks = count()
    return RunRecorder(now_ms=lambda: next(ticks), max_roots=3)


def begin_request(recorder, name):
    exchange = HttpExchange(name, recorder.now_ms(), Request("POST", "/mcp", ()))
    recorder.begin_exchange(exchange)
    return exchange


def begin_worker(recorder, trigger="async", caller=None):
    with caused_by(trigger, caller):
        return recorder.begin_invocation("F", b"{}", "worker", environment_id="F-1", is_new_environment=True)


def test_the_oldest_ended_roots_are_dropped_first(recorder):
    worker = begin_worker(recorder)
    for name in "abcd":
        recorder.end_exchange(begin_request(recorder, name), Response(200))
    assert [root.id for root in recorder.changed_after(0)[1]] == ["worker", "c", "d"]
    assert recorder.invocation("worker") is worker
    recorder.end_invocation(worker, b"{}", error=None, init_ms=None)
    begin_request(recorder, "e")
    assert recorder.invocation("worker") is None


def test_large_roots_are_dropped_before_there_are_many():
    recorder = RunRecorder(max_bytes=1_000)
    for name in "abc":
        with caused_by("http", begin_request(recorder, name).id):
            invocation = recorder.begin_invocation(
                "F", b"x" * 300, name, environment_id="F-1", is_new_environment=False
            )
        for _ in range(2 * MAX_LINES):
            recorder.add_line(invocation, "")
        recorder.add_line(invocation, "x" * 150)
    assert [root.id for root in recorder.changed_after(0)[1]] == ["b", "c"]


def test_what_happens_below_a_dropped_root_is_no_change(recorder):
    dropped, *_ = [begin_request(recorder, name) for name in "abcd"]
    before = recorder.changed_after(0)
    recorder.end_exchange(dropped, Response(200))
    assert recorder.changed_after(0) == before


def test_a_reader_with_a_number_of_an_earlier_run_gets_everything(recorder):
    request = begin_request(recorder, "a")
    assert recorder.changed_after(1_000_000)[1] == [request]


def test_a_repeated_invocation_has_an_id_of_its_own(recorder):
    repeated = [begin_worker(recorder) for _ in range(3)]
    assert [each.id for each in repeated] == ["worker", "worker#2", "worker#3"]
    assert {each.request_id for each in repeated} == {"worker"}


@pytest.mark.parametrize("trigger", ["async", "retry", "queue"])
def test_an_invocation_for_which_nothing_waits_is_none_of_its_caller_s(recorder, trigger):
    request = begin_request(recorder, "a")
    worker = begin_worker(recorder, trigger, request.id)
    assert request.invocations == []
    assert recorder.background_invocations() == (worker,)


def test_an_invocation_keeps_its_newest_lines(recorder):
    invocation = begin_worker(recorder)
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
