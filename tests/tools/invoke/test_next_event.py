import json
from base64 import b64decode, b64encode

import pytest

from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.invoke.next_event import next_event

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": {"a": "é"}}}
ASKS = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": "S"}}
REQUESTS = {"size": {"method": "elicitation/create"}}
ASKS_SIZE = {**ASKS, "result": {**ASKS["result"], "inputRequests": REQUESTS}}  # type: ignore[dict-item] # a JSON object


def answer(requests):
    return {key: {"action": "accept"} for key in requests}


def http(document):
    return {"path": "/mcp", "body": json.dumps(document)}


def encoded(document):
    return {"body": b64encode(json.dumps(document).encode()).decode(), "isBase64Encoded": True}


def stream(document):
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    lines = [f"event: message\ndata: {json.dumps(each)}\n\n" for each in (notification, document)]
    return {"statusCode": 200, "headers": {"content-type": "text/event-stream"}, "body": "".join(lines)}


def params_of(event):
    body = event.get("body")
    text = b64decode(body) if event.get("isBase64Encoded") else body
    return (event if body is None else json.loads(text))["params"]


@pytest.mark.parametrize("wrap", [http, encoded, lambda message: message])
@pytest.mark.parametrize("respond", [http, encoded, stream, lambda message: message])
def test_it_has_the_answers_and_the_state_in_the_format_of_the_event(wrap, respond):
    event = wrap(MESSAGE)
    found = next_event(event, respond(ASKS_SIZE), answer)
    added = {"inputResponses": {"size": {"action": "accept"}}, "requestState": "S"}
    assert params_of(found) == {**params_of(event), **added}
    assert found.keys() == event.keys()
    assert found.get("path") == event.get("path")


def test_the_event_of_any_round_serves():
    second = next_event(MESSAGE, ASKS_SIZE, answer)
    assert next_event(second, ASKS_SIZE, answer) == second


def test_a_call_out_of_time_continues_without_answers():
    second = next_event(MESSAGE, ASKS_SIZE, answer)
    third = next_event(second, ASKS, answer)
    assert third["params"] == {**params_of(MESSAGE), "requestState": "S"}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"result": {"resultType": "complete"}}, "is complete"),
        ({"result": {"tools": []}}, "is complete"),
        ({"result": {"resultType": "task", "taskId": "T"}}, "make call TASK=T"),
        ({"error": {"code": -32602, "message": "Invalid state."}}, "failed: Invalid state"),
        ({"errorType": "ValueError", "errorMessage": "no"}, "it failed: no"),
        ({"statusCode": 502, "body": "<html>"}, "asks nothing"),
        (None, "asks nothing"),
        ([], "asks nothing"),
    ],
)
def test_a_response_that_asks_nothing_is_refused_with_the_reason(response, reason):
    with pytest.raises(CallFailed, match=reason) as refused:
        next_event(MESSAGE, response, answer)
    assert refused.value.status == Status.USAGE


@pytest.mark.parametrize(
    "event", [{"Records": []}, {"body": "no JSON"}, {"body": "[]"}, [], None, {"task": "T"}]
)
def test_an_event_without_a_call_has_no_next_round(event):
    with pytest.raises(CallFailed, match="event"):
        next_event(event, ASKS_SIZE, answer)
