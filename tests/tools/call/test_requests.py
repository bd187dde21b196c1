import io
import json
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.protocol.mirrored_headers import decode_header
from mcp_roundtrip_tools.call.command import main
from mcp_roundtrip_tools.call.terminal import Terminal
from support.scripted_server import ReceivedRequest, respond, scripted

TOOL = {"name": "make", "inputSchema": {"type": "object"}}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
DONE = {"resultType": "complete", "content": []}


def exchange(*results: Mapping[str, Any], called: tuple[str, ...] = ("make",)) -> list[ReceivedRequest]:
    """Run the command, which gets these results; return its requests."""
    replies = [
        respond(200, {"jsonrpc": "2.0", "id": number, "result": result}, Content_Type="application/json")
        for number, result in enumerate(results, 1)
    ]
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
