import io
from typing import Any

import pytest

from mcp_roundtrip_tools.call.command import main
from mcp_roundtrip_tools.call.terminal import Terminal
from support.scripted_server import Reply, respond, scripted

TOOL = {"name": "make", "inputSchema": {"type": "object"}}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}


def message(number: int, **members: Any) -> Reply:
    return respond(200, {"jsonrpc": "2.0", "id": number, **members}, Content_Type="application/json")


def call(url: str) -> tuple[int, list[str]]:
    shown = io.StringIO()
    status = main(["make", "--url", url], terminal=Terminal(io.StringIO(), shown, is_interactive=True))
    return status, shown.getvalue().splitlines()


def run(*replies: Reply) -> tuple[int, list[str]]:
    with scripted(*replies) as server:
        return call(f"{server.url}/mcp")


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
    ended, shown = run(respond(status, {"message": "the function ended"}))
    assert (ended, len(shown)) == (1, 1)
    assert f"{status}: the function ended" in shown[0]
    for word in ("API Gateway", "stack", "AuthMode", "Lambda"):
        assert word not in shown[0]


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
