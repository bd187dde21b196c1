"""The messages of the tasks extension (schema 2026-07-28 of io.modelcontextprotocol/tasks) that servers send.

Stricter than its JSON Schema: only named members, times with a zone, no empty
`inputRequests`. Types of the core protocol are validated with the models of the official SDK.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import mcp_types
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION, methods
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
)
from pydantic.alias_generators import to_camel

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION


def assert_valid(method: str, message: Mapping[str, Any]) -> None:
    """Validate a response to a request of this method, of the extension or of the core protocol.

    Raises pydantic's ValidationError or AssertionError.
    """
    result = message.get("result", {})
    if "error" in message or not (method.startswith("tasks/") or result.get("resultType") == "task"):
        _assert_valid_core(method, message)
    else:
        assert message.keys() == {"jsonrpc", "id", "result"}
        _RESULTS[method].validate_json(json.dumps(result))


_ERROR_DATA: dict[int, type[BaseModel]] = {
    MISSING_REQUIRED_CLIENT_CAPABILITY: mcp_types.MissingRequiredClientCapabilityErrorData,
    UNSUPPORTED_PROTOCOL_VERSION: mcp_types.UnsupportedProtocolVersionErrorData,
}


def _assert_valid_core(method: str, message: Mapping[str, Any]) -> None:
    """Validate a message that a server sent in response to a request of this method.

    The message is a result, an error or a notification. Raises pydantic's ValidationError or AssertionError.
    """
    if "method" in message:
        notification = mcp_types.JSONRPCNotification.model_validate(message)
        assert "id" not in message, "a server sends no requests at this revision"
        methods.parse_server_notification(notification.method, PROTOCOL_VERSION, notification.params)
    elif "error" in message:
        assert "result" not in message
        error = mcp_types.JSONRPCError.model_validate(message).error
        if error.code in _ERROR_DATA:
            _ERROR_DATA[error.code].model_validate(error.data)
    else:
        result = mcp_types.JSONRPCResponse.model_validate(message).result
        methods.parse_server_result(method, PROTOCOL_VERSION, result)
        if result["resultType"] == "input_required":  # the models do not require one of the two members
            assert result.keys() & {"inputRequests", "requestState"}


def _call_tool_result(value: dict[str, Any]) -> dict[str, Any]:
    assert value["resultType"] == "complete"
    assert "io.modelcontextprotocol/related-task" not in value.get("_meta", {})
    methods.parse_server_result("tools/call", PROTOCOL_VERSION, value)
    return value


def _input_requests(value: dict[str, Any]) -> dict[str, Any]:
    asked = {"resultType": "input_required", "inputRequests": value}
    methods.parse_server_result("tools/call", PROTOCOL_VERSION, asked)
    return value


SafeInteger = Annotated[int, Field(ge=1 - 2**53, le=2**53 - 1)]
HeaderSafe = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,}$")]
"""At least 128 bits, in characters that need no encoding in a header."""


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel)


class Result(Strict):
    meta: dict[str, Any] = Field(default_factory=dict, alias="_meta")


class Acknowledgement(Result):
    """UpdateTaskResult and CancelTaskResult."""

    result_type: Literal["complete"]


class Task(Result):
    task_id: HeaderSafe
    created_at: AwareDatetime
    last_updated_at: AwareDatetime
    ttl_ms: SafeInteger | None
    # Absent or of their type: a default other than None excludes null.
    poll_interval_ms: SafeInteger = 0
    status_message: str = ""


class CreateTaskResult(Task):
    result_type: Literal["task"]
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]


class DetailedTask(Task):
    result_type: Literal["complete"]


class WorkingTask(DetailedTask):
    status: Literal["working"]


class InputRequiredTask(DetailedTask):
    status: Literal["input_required"]
    input_requests: Annotated[dict[str, Any], Field(min_length=1), AfterValidator(_input_requests)]


class CompletedTask(DetailedTask):
    status: Literal["completed"]
    result: Annotated[dict[str, Any], AfterValidator(_call_tool_result)]


class Error(Strict):
    code: int
    message: str
    data: Any = None


class FailedTask(DetailedTask):
    status: Literal["failed"]
    error: Error


class CancelledTask(DetailedTask):
    status: Literal["cancelled"]


GetTaskResult = Annotated[
    WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask,
    Field(discriminator="status"),
]

_RESULTS: Mapping[str, TypeAdapter[Any]] = {
    "tools/call": TypeAdapter(CreateTaskResult),
    "tasks/get": TypeAdapter(GetTaskResult),
    "tasks/update": TypeAdapter(Acknowledgement),
    "tasks/cancel": TypeAdapter(Acknowledgement),
}
