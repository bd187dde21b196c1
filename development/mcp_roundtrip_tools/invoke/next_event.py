"""The event of the next round of a call: the answers to the last response, and its state."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip_tools.call.errors import CallFailed, usage_error
from mcp_roundtrip_tools.client.http import json_object, last_message

Requests = Mapping[str, Mapping[str, Any]]
Answer = Callable[[Requests], Mapping[str, Any]]
"""Returns the responses to the requests of a round, by key."""


def next_event(event: Any, response: Any, answer: Answer) -> dict[str, Any]:
    """Return the event of the next round of a call. Raises CallFailed if the response asks nothing.

    `event` is that of any round of the call: an HTTP request in any format, or a JSON-RPC message.
    """
    result = _result(response)
    message = _message(event)
    params = {name: value for name, value in message["params"].items() if name not in _OF_A_ROUND}
    if requests := result.get("inputRequests"):
        params["inputResponses"] = answer(requests)
    if "requestState" in result:
        params["requestState"] = result["requestState"]
    return _with_message(event, {**message, "params": params})


_OF_A_ROUND = ("inputResponses", "requestState")


def called_name(event: Any) -> str:
    """Return what a call names: the tool or the prompt. Raises CallFailed."""
    return str(_message(event)["params"].get("name", "The call"))


def _message(event: Any) -> dict[str, Any]:
    message = event
    if isinstance(event, dict) and isinstance(body := event.get("body"), str):
        message = json_object(b64decode(body) if event.get("isBase64Encoded") else body)
    if isinstance(message, dict) and isinstance(message.get("params"), dict):
        return message
    raise usage_error("--round needs the event of a call: an HTTP request, or JSON-RPC with params.")


def _with_message(event: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    if "body" not in event:
        return message
    text = json.dumps(message, ensure_ascii=False)
    return {**event, "body": b64encode(text.encode()).decode() if event.get("isBase64Encoded") else text}


def requests_of(response: Any) -> Requests:
    """Return what a response asks, by key; nothing if it does not ask."""
    match _response_message(response):
        case {"result": {"resultType": "input_required", "inputRequests": dict(requests)}}:
            return requests
    return {}


def task_of(response: Any) -> str | None:
    """Return the id of the task that a call has become, by its response."""
    match _response_message(response):
        case {"result": {"resultType": "task", "taskId": str(task_id)}}:
            return task_id
    return None


def _result(response: Any) -> dict[str, Any]:
    """Return the result of a round that asks. Raises CallFailed."""
    if task_id := task_of(response):
        raise _asks_nothing(f"the call has become a task: follow it with make call TASK={task_id}")
    match _response_message(response):
        case {"result": {"resultType": "input_required"} as result}:
            return dict(result)
        case {"error": {"message": reason}} | {"errorMessage": reason}:
            raise _asks_nothing(f"it failed: {reason}")
    raise _asks_nothing("the call is complete")


def _asks_nothing(reason: str) -> CallFailed:
    return usage_error(f"The response of --round asks nothing: {reason.rstrip('.')}.")


def _response_message(response: Any) -> Any:
    if not isinstance(response, dict) or not isinstance(body := response.get("body"), str):
        return response
    text = b64decode(body).decode() if response.get("isBase64Encoded") else body
    return last_message(text)
