"""What a result has to look like to be shown: members of the specification's schema that the command reads.

An optional member that is null counts as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mcp_roundtrip.protocol.constants import TASKS_GET, TOOLS_CALL, TOOLS_LIST

Object = dict[str, Any]


class MalformedResult(Exception):
    """A result has another form than the specification says. The message names the member."""


class _Tool(msgspec.Struct):
    name: str
    description: str | None = None
    inputSchema: Object | None = None


class _Tools(msgspec.Struct):
    tools: list[_Tool]
    nextCursor: str | None = None


class _Resource(msgspec.Struct):
    uri: str
    text: str | None = None


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    data: str | None = None
    resource: _Resource | None = None


class _Result(msgspec.Struct):
    content: list[_Block] | None = None
    isError: bool | None = None


class _Params(msgspec.Struct):
    message: str | None = None
    url: str | None = None
    requestedSchema: Object | None = None
    messages: list[Object] | None = None
    systemPrompt: str | None = None


class _Request(msgspec.Struct):
    method: str
    params: _Params | None = None


class _InputRequired(msgspec.Struct):
    inputRequests: dict[str, _Request] | None = None
    requestState: str | None = None


class _CreatedTask(msgspec.Struct):
    taskId: str


class _Error(msgspec.Struct):
    code: int | None = None
    message: str | None = None


class _Task(msgspec.Struct):
    status: str
    statusMessage: str | None = None
    pollIntervalMs: int | float | None = None
    inputRequests: dict[str, _Request] | None = None
    error: _Error | None = None


class _CompletedTask(msgspec.Struct):
    result: _Result


_OF_CALLS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "task": _CreatedTask,
    "input_required": _InputRequired,
}


def check_result(method: str, result: Mapping[str, Any]) -> None:
    """Raise MalformedResult if the result of a request cannot be used."""
    for shape in _shapes(method, result):
        try:
            msgspec.convert(result, shape)
        except msgspec.ValidationError as error:
            raise MalformedResult(str(error)) from None


def _shapes(method: str, result: Mapping[str, Any]) -> list[type[msgspec.Struct]]:
    if method == TOOLS_LIST:
        return [_Tools]
    if method == TASKS_GET:
        return [_Task, _CompletedTask] if result.get("status") == "completed" else [_Task]
    if method == TOOLS_CALL:
        kind = result.get("resultType")
        return [_OF_CALLS.get(kind, _Result) if isinstance(kind, str) else _Result]
    return []
