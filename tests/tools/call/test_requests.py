import io
import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.protocol.mirrored_headers import decode_header
from mcp_roundtrip_tools.call.command import main
from mcp_roundtrip_tools.call.errors import CallFailed
from mcp_roundtrip_tools.call.questions import GivenAnswers, Questions
from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.client.http import LOOPBACK
from support.scripted_server import ReceivedRequest, Reply, message, respond, scripted

TOOL = {"name": "make", "inputSchema": {"type": "object"}}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
DONE = {"resultType": "complete", "content": []}


def exchange(*results: Mapping[str, Any], called: tuple[str, ...] = ("make",)) -> list[ReceivedRequest]:
    """Run the command, which gets these results; return its requests."""
    replies = [message(number, result=result) for number, result in enumerate(results, 1)]
    terminal = Terminal(io.StringIO("x\n" * 9), io.StringIO(), is_interactive=True)
    with scripted(*replies) as server:
        assert main([*called, "--url", f"{server.url}/mcp"], terminal=terminal) == 0
        return server.requests


def params_of(request: ReceivedRequest) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(request.body)["params"]
    return params


def asking(key: str | None = None, **state: str) -> dict[str, Any]:
    field = {"type": "object", "properties": {"value": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": field}}
    asked = {} if key is None else {"inputRequests": {key: question}}
    return {"resultType": "input_required", **asked, **state}


def test_a_round_has_the_state_of_the_result_before_it_and_its_answers_and_no_others():
    answer = {"action": "accept", "content": {"value": "x"}}
    results = asking("a", requestState="s =1"), asking("b"), asking(requestState="s2"), DONE
    _, *rounds = exchange(LISTED, *results)
    sent = [{name: each for name, each in params_of(each).items() if name != "_meta"} for each in rounds]
    call = {"name": "make", "arguments": {}}
    assert sent == [
        call,
        {**call, "inputResponses": {"a": answer}, "requestState": "s =1"},
        {**call, "inputResponses": {"b": answer}},
        {**call, "requestState": "s2"},
    ]
    assert len({json.loads(each.body)["id"] for each in rounds}) == len(rounds)


def test_each_request_declares_the_client_and_its_headers_mirror_its_body():
    city = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    listed = {**LISTED, "tools": [{"name": "make", "inputSchema": city}]}
    task = {"resultType": "task", "taskId": "tâche 1", "status": "working"}
    polled = {**task, "resultType": "complete", "status": "completed", "result": DONE}
    requests = exchange(listed, task, polled, called=("make", "city= Köln"))
    names = [None, "make", "tâche 1"]
    for request, name in zip(requests, names, strict=True):
        meta = params_of(request)["_meta"]
        assert request.header("mcp-method") == json.loads(request.body)["method"]
        assert request.header("mcp-protocol-version") == meta[META_PROTOCOL_VERSION]
        assert (decode_header(request.header("mcp-name") or "") or None) == name
        assert meta[META_CLIENT_CAPABILITIES].keys() == {"elicitation", "sampling", "roots", "extensions"}
        assert TASKS_EXTENSION in meta[META_CLIENT_CAPABILITIES]["extensions"]
        for media_type in ("application/json", "text/event-stream"):
            assert media_type in (request.header("accept") or "")
    assert decode_header(requests[1].header("mcp-param-city") or "") == " Köln"


def test_all_pages_of_the_tools_are_read_and_tools_with_wrong_headers_are_left_out(capsys):
    wrong = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    first = {**LISTED, "nextCursor": "", "tools": [{"name": "wrong", "inputSchema": wrong}]}
    requests = exchange(first, LISTED, called=())
    assert [params_of(each).get("cursor") for each in requests] == [None, ""]
    assert capsys.readouterr().out.split() == ["make"]


def call(url: str) -> tuple[int, list[str]]:
    shown = io.StringIO()
    status = main(["make", "--url", url], terminal=Terminal(io.StringIO(), shown, is_interactive=True))
    return status, shown.getvalue().splitlines()


def run(*replies: Reply) -> tuple[int, list[str]]:
    with scripted(*replies) as server:
        return call(f"{server.url}/mcp")


def test_the_answer_that_is_shown_for_a_form_fits_it():
    fields = {"title": {"enum": ["Ada's"], "type": "string"}, "label": {"type": "string"}}
    form = {"type": "object", "properties": fields, "required": ["title"]}
    asked = {"new": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": form}}}
    terminal = Terminal(io.StringIO(), io.StringIO(), is_interactive=False)
    with pytest.raises(CallFailed, match="neu") as failed:
        Questions("make", terminal, GivenAnswers({"neu": 1})).answer(asked)
    [shown] = (each for each in shlex.split(str(failed.value)) if each.startswith("ANSWERS="))
    given = GivenAnswers(json.loads(shown.removeprefix("ANSWERS=")))
    answers = Questions("make", terminal, given).answer(asked)
    assert answers == {"new": {"action": "accept", "content": {"title": "Ada's"}}}


TASK = {"resultType": "task", "taskId": "t1"}
POLLED = {"taskId": "t1", "status": "input_required", "inputRequests": {"key": "?"}}

MALFORMED: dict[str, list[Reply]] = {
    "bytes": [message(1, result=LISTED), respond(200, b"\xff", Content_Type="application/json")],
    "deep": [message(1, result=LISTED), respond(200, b"[" * 100_000, Content_Type="application/json")],
    "content": [message(1, result=LISTED), message(2, result={"resultType": "complete", "content": ["a"]})],
    "a type": [message(1, result=LISTED), message(2, result={"resultType": "other", "content": []})],
    "no task id": [message(1, result=LISTED), message(2, result={"resultType": "task"})],
    "no status": [message(1, result=LISTED), message(2, result=TASK), message(3, result=TASK)],
    "a question": [message(1, result=LISTED), message(2, result=TASK), message(3, result=POLLED)],
    "no list": [message(1, result=None)],
    "a cursor": [message(1, result={**LISTED, "nextCursor": 1})],
}


@pytest.mark.parametrize("replies", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_result_ends_with_one_line(replies):
    status, shown = run(*replies)
    assert status == 1
    assert [line.partition(":")[0] for line in shown if not line.startswith("Task t1.")] == ["error"]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b'{"authorization_servers": 1}',
        b'{"authorization_servers": ["http://127.0.0.1:99999"], "resource": "http://127.0.0.1:99999"}',
        b'{"authorization_servers": ["http://[::1"], "resource": "http://[::1"}',
        b'{"authorization_servers": ["http://127.0.0.1:1"], "resource": 1}',
    ],
)
def test_malformed_metadata_ends_with_one_line(document):
    with scripted() as server:
        named = f'Bearer resource_metadata="{server.url}/metadata"'
        server.script += [respond(401, b"", WWW_Authenticate=named), respond(200, document)]
        status, shown = call(f"{server.url}/mcp")
        assert server.requests[1].target == "/metadata"
    assert (status, len(shown)) == (2, 1), shown


@pytest.mark.parametrize("status", [403, 503])
def test_a_local_server_speaks_for_itself_and_not_for_a_deployment(status):
    ended, shown = run(respond(status, {"message": "ended"}))
    assert (ended, len(shown)) == (1, 1)
    assert f"{status}: ended" in shown[0]
    for word in ("API Gateway", "stack", "AuthMode", "Lambda"):
        assert word not in shown[0]


@pytest.mark.parametrize("hosts", [LOOPBACK, ()])
def test_scopes_that_a_local_token_lacks_are_named_with_the_variable_that_adds_them(hosts, monkeypatch):
    monkeypatch.setattr("mcp_roundtrip_tools.call.server.LOOPBACK", hosts)
    error = {"jsonrpc": "2.0", "id": 2, "error": {"code": -32600, "message": "Insufficient scope"}}
    challenge = 'Bearer error="insufficient_scope", scope="orders:pay orders:read"'
    refused = respond(403, error, Content_Type="application/json", WWW_Authenticate=challenge)
    ended, [shown] = run(message(1, result=LISTED), refused)
    assert (ended, 'SCOPES="orders:pay orders:read"' in shown) == (1, bool(hosts))


@pytest.mark.parametrize(
    "problem",
    [
        '  File "app.py", line 1, in <module>\n    import nowhere\nModuleNotFoundError: nowhere',
        "SettingsError: MCP_STATE_KEY_ARN: is not set; set it in the function's environment",
    ],
)
def test_a_problem_that_make_run_names_is_printed_as_it_is(problem):
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": problem}}
    ended, shown = run(respond(200, error, Content_Type="application/json", apigw_requestid="request-1"))
    text = "\n".join(shown)
    assert (ended, text.endswith(problem), "refuses" in text) == (1, True, False)
