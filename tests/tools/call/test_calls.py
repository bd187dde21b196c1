import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from mcp_roundtrip_tools.call.command import Caller
from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.call.questions import GivenAnswers, Questions
from mcp_roundtrip_tools.call.server import McpServer
from mcp_roundtrip_tools.call.terminal import Terminal

KEEP = {
    "method": "elicitation/create",
    "params": {"message": "Keep it?", "requestedSchema": {"properties": {}}},
}
TASK = {"resultType": "task", "taskId": "t1", "status": "working"}


class ScriptedServer:
    """Answers `tasks/get` with the next status, and records the other requests."""

    def __init__(self, *polls: Mapping[str, Any] | type[BaseException]) -> None:
        self.polls: Iterator[Mapping[str, Any] | type[BaseException]] = iter(polls)
        self.sent: list[tuple[str, Mapping[str, Any]]] = []

    def request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == "tasks/get":
            found = next(self.polls)
            if isinstance(found, type):
                raise found
            return {"taskId": params["taskId"], "pollIntervalMs": 0, **found}
        self.sent.append((method, params))
        return TASK if method == "tools/call" else {}


def terminal_of(entered: str) -> tuple[Terminal, io.StringIO]:
    shown = io.StringIO()
    return Terminal(io.StringIO(entered), shown, is_interactive=True), shown


def follow(
    server: ScriptedServer, entered: str = "", sleep: Callable[[float], None] = lambda seconds: None
) -> tuple[Mapping[str, Any], str]:
    terminal, shown = terminal_of(entered)
    caller = Caller(cast("McpServer", server), Questions("make", terminal, GivenAnswers()), terminal, sleep)
    return caller.call({"name": "make"}, {}), shown.getvalue()


def test_status_and_progress_are_shown_once_and_questions_are_asked_once():
    asking = {"status": "input_required", "statusMessage": "Made", "inputRequests": {"keep": KEEP}}
    working = {"status": "working", "statusMessage": "Making"}
    server = ScriptedServer(working, working, asking, asking, working, {"status": "completed", "result": {}})
    result, shown = follow(server)
    assert result == {}
    assert shown.count("make asks keep") == 1
    assert [line.strip() for line in shown.splitlines() if line.startswith("  work")] == [
        "working: Making"
    ] * 2
    accepted = {"keep": {"action": "accept", "content": {}}}
    assert server.sent[1:] == [("tasks/update", {"taskId": "t1", "inputResponses": accepted})]


def test_a_question_that_was_answered_is_not_asked_again_beside_a_later_one():
    polls = [{"status": "input_required", "inputRequests": dict.fromkeys(keys, KEEP)} for keys in ("a", "ab")]
    server = ScriptedServer(*polls, *polls, {"status": "completed", "result": {}})
    _, shown = follow(server)
    assert [[*params["inputResponses"]] for _, params in server.sent[1:]] == [["a"], ["b"]]
    assert [shown.count(f"make asks {key}") for key in "ab"] == [1, 1]


@pytest.mark.parametrize(("interval_ms", "pause_s"), [(2_500, 2.5), (0, 0.1), (9_000_000, 60), (None, 1)])
def test_a_task_is_polled_at_its_own_interval_within_bounds(interval_ms, pause_s):
    working = {"status": "working", "pollIntervalMs": interval_ms}
    pauses = list[float]()
    follow(ScriptedServer(working, {"status": "completed", "result": {}}), sleep=pauses.append)
    assert pauses == [pause_s]


@pytest.mark.parametrize(
    ("poll", "text"),
    [
        ({"status": "failed", "error": {"code": -32603, "message": "Internal error"}}, "Internal error"),
        ({"status": "cancelled"}, "was cancelled"),
    ],
)
def test_a_task_that_fails_is_an_error(poll, text):
    with pytest.raises(CallFailed, match=text) as caught:
        follow(ScriptedServer(poll))
    assert caught.value.status is Status.ERROR


@pytest.mark.parametrize(("entered", "sent"), [("y\n", ["tasks/cancel"]), ("\n", []), ("", [])])
def test_ctrl_c_stops_waiting_and_cancels_the_task_only_on_request(entered, sent):
    server = ScriptedServer(KeyboardInterrupt)
    with pytest.raises(CallFailed, match=r"is cancelled|TASK=t1") as caught:
        follow(server, entered)
    assert caught.value.status is Status.INTERRUPTED
    assert [method for method, _ in server.sent[1:]] == sent


URL = f"https://pay.example/{'long/' * 40}?order=1#terms"


def answer(params: dict[str, Any], entered: str) -> tuple[dict[str, Any], str]:
    """Return the response to an elicitation, and what was shown."""
    terminal, shown = terminal_of(entered)
    request = {"method": "elicitation/create", "params": params}
    return Questions("make", terminal, GivenAnswers()).answer({"key": request})["key"], shown.getvalue()


@pytest.mark.parametrize(("entered", "action"), [("\n", "accept"), ("/d\n", "decline"), ("", "cancel")])
def test_a_url_is_shown_whole_and_the_user_agrees_or_refuses(entered, action):
    response, shown = answer({"mode": "url", "message": "Pay", "url": URL}, entered)
    assert response == {"action": action}
    assert f"{URL}\n" in shown


FORM = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}


def test_a_form_with_several_fields_is_reviewed_before_it_is_sent():
    response, _ = answer({"message": "?", "requestedSchema": FORM}, "Adda\n3\nn\nAda\n4\n\n")
    assert response == {"action": "accept", "content": {"name": "Ada", "size": 4}}
