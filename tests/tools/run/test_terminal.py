import io
import json
import time
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from mcp_roundtrip_tools.client.terminal_text import Styles, wants_colours
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import HttpExchange, ServiceCall, caused_by
from mcp_roundtrip_tools.run.terminal.terminal import JsonLines, Terminal

CLOCK = time.strftime("%H:%M:%S", time.localtime(0))
INDENT = "             weather  "
RESULT: Mapping[str, Any] = {"resultType": "complete", "content": []}


class Run:
    """A recorder whose terminal writes to `text`. The clock stands at 0."""

    def __init__(self, *listeners, colours=False):
        self.written: list[str] = []
        self.now_ms = 0.0
        terminal = Terminal(self.written.append, Styles(colours))
        self.recorder = RunRecorder(terminal, *listeners, now_ms=lambda: self.now_ms)
        self._ids = map(str, count())

    @property
    def lines(self):
        return "\n".join(self.written).split("\n") if self.written else []

    def begin(self, message, path="/mcp", headers=None, method="POST"):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        exchange = HttpExchange(
            next(self._ids), 0, Request(method, path, tuple((headers or {}).items()), body)
        )
        self.recorder.begin_exchange(exchange)
        return exchange

    def invoke(self, caller, function="local_weather", *lines, new=False, trigger="http"):
        """Begin an invocation that prints lines."""
        environment, caller_id = f"{function.removeprefix('local_')}-1", None if caller is None else caller.id
        more = {"environment_id": environment, "is_new_environment": new}
        with caused_by(trigger, caller_id):
            invocation = self.recorder.begin_invocation(function, b"{}", next(self._ids), **more)
        for line in lines:
            self.recorder.add_line(invocation, line if isinstance(line, str) else json.dumps(line))
        return invocation

    def end(self, invocation, error=None):
        self.recorder.end_invocation(invocation, b"{}", error=error, init_ms=None)

    def respond(self, exchange, response, status=200, content_type="application/json"):
        body = response if isinstance(response, bytes) else json.dumps(response).encode()
        self.recorder.end_exchange(exchange, Response(status, (("Content-Type", content_type),), body))

    def answer(self, message, response, *lines, status=200, **more):
        """Answer a request by the function weather, which prints lines; return the lines that are written."""
        exchange = self.begin(message, **more)
        self.end(self.invoke(exchange, "local_weather", *lines))
        self.respond(exchange, response, status)
        return self.lines


@pytest.fixture
def run():
    return Run()


def event(name, level="INFO", **fields):
    return {"level": level, "message": name, "timestamp": "", "service": "weather", **fields}


def call(name="get_weather", **params):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, **params}}


def result(**members):
    return {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, **members}}


def test_a_forwarded_call_is_one_line(run):
    exchange = run.begin(call())
    door = run.invoke(exchange, "local_front_door", event("request_forwarded", owner="weather"))
    completed = event("request_completed", round=2, asked=["keep"], outcome="input_required")
    tool = run.invoke(door, "local_weather", completed, new=True, trigger="invoke")
    for service in ("kms", "kms", "dynamodb"):
        run.recorder.add_service_call(tool, ServiceCall(service, "Operation", "", 200, 0, 1))
    run.now_ms = 6.4
    run.respond(exchange, result(resultType="input_required"))
    words = "round 2 · asked keep · weather-1 (new) · 2 KMS · 1 DynamoDB · 6 ms"
    assert run.lines == [f"{CLOCK}  tools/call     get_weather             {words}"]


def completed(**fields):
    return event("request_completed", **fields)


def failure(text):
    return result(isError=True, content=[{"type": "text", "text": text}])


LISTED, POLLED = (
    {"method": "tools/list", "id": 1},
    {"method": "tasks/get", "id": 1, "params": {"taskId": "abcdefghijkl"}},
)
COMPLETION = {"ref": {"name": "p"}, "argument": {"name": "a"}}
COMPLETED = {"method": "completion/complete", "id": 1, "params": COMPLETION}
EXPIRED = {"error": {"code": -32602, "message": "Invalid or expired requestState"}}
TASK = result(resultType="task", taskId="abcdefghijkl", status="working")
END = " · weather-1 · 0 ms"


@pytest.mark.parametrize(
    ("message", "response", "line", "expected"),
    [
        (call(), result(), "", "  weather-1 · 0 ms"),
        (call(), failure("no\nplace"), "", f"tool error: no place{END}"),
        (call(), failure("no"), completed(outcome="arguments_refused"), f"arguments refused: no{END}"),
        (
            call(),
            EXPIRED,
            event("state_refused", "WARNING", reason="expired"),
            f"-32602 Invalid or expired requestState (expired){END}",
        ),
        (call(), TASK, completed(round=3, outcome="task"), f"round 3 · task abcdefgh working{END}"),
        (
            call(),
            result(),
            completed(round=1, outcome="asked_on_page", asked=["place"]),
            f"round 1 · asked place on a page{END}",
        ),
        (LISTED, {"result": {"tools": [{}, {}]}}, "", f"2 tools{END}"),
        (
            POLLED,
            {"result": {"taskId": "abcdefghijkl", "status": "completed"}},
            "",
            f"tasks/get      abcdefgh                completed{END}",
        ),
        (
            COMPLETED,
            {"result": {"completion": {"values": ["x"]}}},
            "",
            f"completion/complete p.a                1 value{END}",
        ),
        (b"not JSON", {"error": {"code": -32700, "message": "Parse error"}}, "", "-32700 Parse error"),
        (b"", {"message": "Not Found"}, "", "POST /mcp                             "),
        ([1], [2], "", "POST /mcp                             "),
    ],
)
def test_the_line_says_what_happened(run, message, response, line, expected):
    [written] = run.answer(message, response, *([line] if line else []))
    assert expected in written


def test_the_result_is_found_in_an_event_stream(run):
    exchange = run.begin({"method": "tools/list", "id": 1})
    stream = b'data: {"method": "notifications/progress"}\n\ndata: {"result": {"tools": [{}]}}\n\n'
    run.respond(exchange, stream, content_type="text/event-stream")
    assert "1 tool" in run.lines[0]


def test_a_failed_function_is_named_with_its_error_and_traceback(run):
    exchange = run.begin(call())
    trace = 'Traceback (most recent call last):\n\xa0\xa0File "/app.py", line 1, in handler'
    invocation = run.invoke(exchange, "local_weather", f"[ERROR] ValueError: no\n{trace}")
    run.end(invocation, "Runtime.ExitError: RequestId: 1 Error: Runtime exited")
    run.respond(exchange, {"message": "Internal Server Error"}, status=500)
    assert run.lines[:-1] == [
        f"{INDENT}ERROR ValueError: no",
        "                      Traceback (most recent call last):",
        '                        File "/app.py", line 1, in handler',
    ]
    assert "500 Runtime.ExitError: Runtime exited · weather-1" in run.lines[-1]


OWN = '  File "/x/app.py", line 3, in forecast\n    return h()\n           ^^^'
FRAMES = [
    '  File "/x/layers/mcp_roundtrip/mcp_roundtrip/entry/a.py", line 3, in b\n    c(\n    ^^',
    '  File "/x/.venv/lib/python3.13/site-packages/d/e.py", line 3, in f\n    g()\n    ^^^',
]


@pytest.mark.parametrize(
    ("traceback", "shown"),
    [
        ([*FRAMES, OWN, "ValueError: [redacted]"], [*OWN.split("\n"), "ValueError: [redacted]"]),
        ([*FRAMES, "mcp_roundtrip.internal_errors.Failed: late"], ["Failed: late"]),
    ],
)
def test_a_traceback_that_the_layer_logs_has_the_frames_of_the_author_only(run, traceback, shown):
    exception = "\n".join(["Traceback (most recent call last):", *traceback])
    raised = event("tool_raised", "ERROR", tool="get_weather", exception=exception, exception_name="Error")
    *written, _ = run.answer(call(), result(), raised)
    assert written == [
        f"{INDENT}ERROR tool_raised  tool=get_weather",
        *(" " * 22 + line for line in shown),
    ]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a print", "a print"),
        ("[WARNING]\t2026-11-23T03:00:00.000Z\trequest-id\tcareful", "WARNING careful"),
        ("[WARNING]\t2026-11-23T03:00:00.000Z\t\tLAMBDA_WARNING: Unhandled exception. The", None),
        ({"level": "WARNING", "message": "LAMBDA_WARNING: Unhandled exception. The"}, None),
        ('{"an": "object"}', '{"an": "object"}'),
        ('{"not": JSON', '{"not": JSON'),
        (event("request_completed"), None),
        (event("call_parked"), None),
        ({"_aws": {}, "service": "weather", "questions": [1]}, None),
        (
            event("step_retried", "WARNING", step="fetch", error="a b"),
            'WARNING step_retried  step=fetch  error="a b"',
        ),
        (event("fetched", location="f:1", n=3), "INFO fetched  n=3"),
        ({"level": "INFO", "message": {"a": 1}, "logger": "root", "requestId": "1"}, 'INFO {"a": 1}'),
    ],
)
def test_lines_of_functions_are_readable(run, line, shown):
    expected = [] if shown is None else [f"{INDENT}{shown}"]
    assert run.answer(call(), result(), line)[:-1] == expected


IMPORTING = (
    '  File "/usr/lib/python3.13/importlib/__init__.py", line 88, in import_module\n    return _gcd()\n'
)
LOADING = '  File "<frozen importlib._bootstrap>", line 1387, in _gcd_import\n'
IN_LAYER = '  File "/opt/python/mcp_roundtrip/server/registry.py", line 9, in tool\n    raise Wrong\n'


def test_the_error_of_an_import_has_the_frames_of_the_author_only(run):
    error = {"level": "ERROR", "message": "x", "errorType": "KeyError", "errorMessage": "'X'"}
    trace = [IMPORTING, LOADING, f"{OWN}\n", IN_LAYER]
    hidden = event("request_completed")
    *written, _ = run.answer(call(), result(), hidden, {**error, "stackTrace": trace})
    assert written == [
        f"{INDENT}ERROR x",
        *(" " * 22 + line for line in OWN.split("\n")),
        " " * 22 + "KeyError: 'X'",
    ]


def test_lines_are_written_at_once_and_name_the_function_where_another_one_begins(run):
    exchange = run.begin(call())
    weather = run.invoke(exchange, "local_weather", "first", "second")
    run.invoke(exchange, "local_greet", "third")
    assert run.lines == [f"{INDENT}first", "                      second", "               greet  third"]
    run.respond(exchange, result())
    run.recorder.add_line(weather, "late")
    assert run.lines[4:] == [f"{INDENT}late"]


def test_a_worker_has_a_line_with_its_task(run):
    worked = event("worker_finished", task="abcdefghijkl")
    run.end(run.invoke(None, "local_provision_worker", worked, trigger="async"))
    lost = run.invoke(None, "local_provision_worker", trigger="retry")
    run.end(lost, "Runtime.ExitError: signal: SIGKILL")
    assert "worker         provision_worker        task abcdefgh · provision_worker-1" in run.lines[0]
    assert "worker (retry) provision_worker        Runtime.ExitError: signal: SIGKILL" in run.lines[1]


def test_other_protocol_versions_are_named(run):
    old = {"mcp-protocol-version": "2025-11-25"}
    assert "2025-11-25 · weather-1" in run.answer(call(), result(), headers=old)[-1]
    new = {"mcp-protocol-version": "2026-07-28"}
    assert "2026" not in run.answer(call(), result(), headers=new)[-1]


def test_a_client_or_a_function_cannot_control_the_terminal():
    for colours in (False, True):
        run = Run(colours=colours)
        attack = "\x1b[2J\x1b]0;x\x07"
        error = {"error": {"code": attack, "message": attack}}
        written = "\n".join(run.answer(call(attack), error, attack, path=attack))
        assert not any(part in written for part in ("\x1b[2J", "\x1b]", "\x07"))
        assert ("\x1b" in written) is colours


def test_colours_are_for_terminals_unless_the_user_says_otherwise():
    class OnTerminal(io.StringIO):
        def isatty(self):
            return True

    assert wants_colours(OnTerminal(), {})
    assert not wants_colours(OnTerminal(), {"NO_COLOR": "1"})
    assert not wants_colours(OnTerminal(), {"TERM": "dumb"})
    assert not wants_colours(io.StringIO(), {})
    assert wants_colours(io.StringIO(), {"FORCE_COLOR": "1"})


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 200_000])
def test_deep_nesting_is_no_message(run, deep):
    assert run.answer(deep, deep, deep.decode())[-1].startswith(f"{CLOCK}  POST /mcp ")


def test_json_has_an_object_for_each_root_without_bodies():
    written: list[str] = []
    run = Run(JsonLines(written.append))
    exchange = run.begin(call(arguments={"password": "hidden"}), headers={"authorization": "hidden"})
    completed = event("request_completed", round=1, asked=["place"], outcome="input_required")
    invocation = run.invoke(exchange, "local_weather", completed, new=True)
    run.recorder.add_service_call(invocation, ServiceCall("kms", "Sign", "StateKey", 200, 0, 1.26))
    run.recorder.end_invocation(invocation, b"hidden", error=None, init_ms=12)
    run.respond(exchange, b"hidden")
    run.recorder.note("weather restarted")
    run.end(run.invoke(invocation, "local_worker", trigger="async"), "E: no")
    run.respond(run.begin(call()), {"message": "Internal Server Error"}, status=500)
    request, note, worker, failed = map(json.loads, written)
    assert "hidden" not in "".join(written)
    expected = {
        **{"type": "request", "id": "0", "method": "tools/call", "name": "get_weather", "status": 200},
        **{"round": 1, "asked": ["place"], "outcome": "input_required"},
    }
    assert request.items() >= expected.items()
    [invoked] = request["invocations"]
    assert (invoked["environment"], invoked["isNewEnvironment"]) == ("weather-1", True)
    assert invoked["serviceCalls"][0]["durationMs"] == 1.3
    assert note == {"type": "note", "atMs": 0, "text": "weather restarted"}
    assert (worker["type"], worker["caller"], worker["error"]) == ("invocation", "1", "E: no")
    assert "Internal Server Error" in failed["failure"]
    assert "failure" not in request


@pytest.mark.parametrize(("headers", "is_refused"), [({}, False), ({"Authorization": "Bearer x"}, True)])
def test_a_challenge_is_no_failure_but_a_refused_token_is_one(headers, is_refused):
    warning = event("unauthorized", "WARNING", reason="no_token")
    unauthorized = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Unauthorized"}}
    line = Run(colours=True).answer(call(), unauthorized, warning, status=401, headers=headers)[-1]
    assert ("sign-in" in line, "\x1b[31m" in line) == (not is_refused, is_refused)
