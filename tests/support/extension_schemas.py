"""What servers send in the tasks extension (schema 2026-07-28 of io.modelcontextprotocol/tasks) and SEP-2640.

Stricter than the JSON Schema of tasks: only named members, times with a zone, no empty `inputRequests`. Of
SEP-2640, the rules for entries that a schema can check. Types of the core protocol are validated with the
models of the official SDK.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

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
    model_validator,
)
from pydantic.alias_generators import to_camel

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION


def assert_valid(method: str, message: Mapping[str, Any]) -> None:
    """Validate a response to a request of this method, of an extension or of the core protocol.

    Raises pydantic's ValidationError or AssertionError.
    """
    result = message.get("result", {})
    if method == "tools/call" and result.get("resultType") == "task":
        method = "a new task"
    if "error" in message or method not in _RESULTS:
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

# SEP-2640


class SkillResource(Strict):
    uri: str
    digest: Annotated[str, StringConstraints(pattern=r"\Asha256:[0-9a-f]{64}\z")]
    size: Annotated[int, Field(ge=0)]


class Skill(Strict):
    uri: Annotated[str, StringConstraints(pattern=r"\Askill://.+/SKILL\.md\z")]
    frontmatter: dict[str, Any]
    resources: Annotated[list[SkillResource], Field(max_length=512)]

    @model_validator(mode="after")
    def _has_every_file_once_within_its_directory(self) -> Self:
        root = self.uri.removesuffix("SKILL.md")
        uris = [each.uri for each in self.resources]
        assert self.uri in uris
        assert len(set(uris)) == len(uris)
        assert all(uri.startswith(root) for uri in uris)
        assert root.endswith(f"/{self.frontmatter['name']}/")
        assert isinstance(self.frontmatter["description"], str)
        assert sum(each.size for each in self.resources) <= 16 * 1024 * 1024
        return self


class Cacheable(Result):
    result_type: Literal["complete"]
    ttl_ms: Annotated[int, Field(ge=0)]
    cache_scope: Literal["public", "private"]


class ListSkillsResult(Cacheable):
    skills: list[Skill]
    next_cursor: str = ""


class GetSkillResult(Cacheable):
    skill: Skill


def _resources(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = {"resultType": "complete", "resources": value, "ttlMs": 0, "cacheScope": "private"}
    methods.parse_server_result("resources/list", PROTOCOL_VERSION, listed)
    return value


class ReadResourceDirectoryResult(Cacheable):
    """SEP-2640 asks for no caching hints here. MCP Inspector does."""

    resources: Annotated[list[dict[str, Any]], AfterValidator(_resources)]
    next_cursor: str = ""


_RESULTS: Mapping[str, TypeAdapter[Any]] = {
    "a new task": TypeAdapter(CreateTaskResult),
    "tasks/get": TypeAdapter(GetTaskResult),
    "tasks/update": TypeAdapter(Acknowledgement),
    "tasks/cancel": TypeAdapter(Acknowledgement),
    "skills/list": TypeAdapter(ListSkillsResult),
    "skills/get": TypeAdapter(GetSkillResult),
    "resources/directory/read": TypeAdapter(ReadResourceDirectoryResult),
}
