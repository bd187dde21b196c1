"""What clients of the `initialize` era are served: no sessions, and nothing remembered between requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.protocol.methods import (
    INITIALIZE,
    LEGACY_VERSION,
    LEGACY_VERSIONS,
    PING,
    RESOURCES_READ,
    TOOLS_LIST,
)
from mcp_roundtrip.protocol.request_validation import unknown_method
from mcp_roundtrip.server.legacy.model_questions import with_input_responses
from mcp_roundtrip.server.legacy.round import LegacyCall
from mcp_roundtrip.server.model import Handler, RequestContext, ServerOptions, kept, listed
from mcp_roundtrip.server.round import Reply
from mcp_roundtrip.server.tools import LegacyQuestions, TaskSupport

RESOURCE_NOT_FOUND: Final = -32002
"""2025-11-25, server/resources "Error Handling"."""


class LegacyTool(Protocol):
    """A tool, registered or read from a catalog."""

    @property
    def task(self) -> TaskSupport | None: ...
    @property
    def legacy_questions(self) -> LegacyQuestions: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...
    def definition(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class LegacyServer:
    """The methods of a server in 2025-11-25 and 2025-06-18.

    `features` are the handlers of today's methods by capability, `tools` the tools by name. `questions` is
    the choice for prompts and resources. `tasks` are the handlers of the methods for tasks: none, if no call
    can become a task.
    """

    options: ServerOptions
    features: Mapping[str, Mapping[str, Handler]]
    tools: Mapping[str, LegacyTool]
    questions: LegacyQuestions = "error"
    tasks: Mapping[str, Handler] = field(default_factory=dict)

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        served = {
            method: self._served(handler)
            for methods in self.features.values()
            for method, handler in methods.items()
        }
        if RESOURCES_READ in served:
            served[RESOURCES_READ] = _with_its_code(served[RESOURCES_READ])
        return {
            **served,
            INITIALIZE: self._initialize,
            PING: lambda context: Reply({}),
            TOOLS_LIST: kept(self.options, self._list),
            **{method: _since_tasks(handler) for method, handler in self.tasks.items()},
        }

    def _served(self, handler: Handler) -> Handler:
        call = partial(LegacyCall, choice=self.questions)

        def handled(context: RequestContext) -> Reply | HttpResponse:
            reply = handler(replace(context, call=call))
            if isinstance(reply, HttpResponse):  # another function's, which serves this era itself
                return reply
            return replace(reply, result=legacy_result(reply.result))

        return handled

    def _initialize(self, context: RequestContext) -> Reply:
        requested = _requested_version(context.route.params)
        version = requested if requested in LEGACY_VERSIONS else LEGACY_VERSION
        told = self.options.instructions
        instructions = {} if told is None else {"instructions": told}
        return Reply(
            {
                "protocolVersion": version,
                "capabilities": self._capabilities(version),
                "serverInfo": self.options.server_info,
                **instructions,
            }
        )

    def _capabilities(self, version: str) -> dict[str, Any]:
        """No `logging`: nobody would remember the level that a client sets."""
        tasks: dict[str, Any] = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        offered: dict[str, Any] = {feature: {} for feature in self.features}
        return {**offered, **(tasks if self.tasks and has_tasks(version) else {})}

    def _list(self, context: RequestContext) -> Reply:
        knows_tasks = bool(self.tasks) and has_tasks(context.route.meta.protocol_version)
        tools = {name: _Listed(tool, knows_tasks) for name, tool in self.tools.items()}
        return Reply(legacy_result(listed(self.options, "tools", tools, context).result))


def _requested_version(params: Mapping[str, Any]) -> str:
    """`protocolVersion` of an InitializeRequest. Raises -32602 where one of its required members is wrong."""
    for name, kind, expected in _INITIALIZE_MEMBERS:
        if not isinstance(params.get(name), kind):
            raise ProtocolError(INVALID_PARAMS, f"Invalid params: initialize needs {name}, {expected}")
    version: str = params["protocolVersion"]
    return version


_INITIALIZE_MEMBERS: Final = (
    ("protocolVersion", str, f'a string such as "{LEGACY_VERSION}"'),
    ("capabilities", dict, "an object"),
    ("clientInfo", dict, "an object with name and version"),
)


def has_tasks(version: str) -> bool:
    """Whether that version of the protocol has tasks."""
    return version == LEGACY_VERSION


def _since_tasks(handler: Handler) -> Handler:
    def handled(context: RequestContext) -> Reply | HttpResponse:
        if not has_tasks(context.route.meta.protocol_version):
            raise unknown_method(context.route.method)
        return handler(context)

    return handled


def _with_its_code(read: Handler) -> Handler:
    """`resources/read` with the error code that those versions have for a resource that is not there."""
    from mcp_roundtrip.server.resources import NOT_FOUND

    def handled(context: RequestContext) -> Reply | HttpResponse:
        try:
            return read(context)
        except ProtocolError as failure:
            if failure.code != INVALID_PARAMS or failure.message != NOT_FOUND:
                raise
            failure.code = RESOURCE_NOT_FOUND
            raise

    return handled


@dataclass(frozen=True, slots=True)
class _Listed:
    """A Tool object of those versions."""

    tool: LegacyTool
    knows_tasks: bool

    @property
    def scopes(self) -> tuple[str, ...]:
        return self.tool.scopes

    def definition(self) -> Mapping[str, Any]:
        tool = dict(self.tool.definition())
        if self.tool.legacy_questions == "model":
            tool["inputSchema"] = with_input_responses(tool["inputSchema"])
            tool.pop("outputSchema", None)  # what tells the model to ask has no structured content
        # Structured content is an object there, so an output schema for anything else has no place.
        if tool.get("outputSchema", {}).get("type") != "object":
            tool.pop("outputSchema", None)
        if self.knows_tasks and self.tool.task is not None:
            tool["execution"] = {"taskSupport": self.tool.task}
        return tool


def legacy_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the members that those versions do not have."""
    later = {"ttlMs", "cacheScope"} | ({"resultType"} if result.get("resultType") == "complete" else set())
    return {name: member for name, member in call_tool_result(result).items() if name not in later}


def call_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A CallToolResult. Structured content that is no object is left out: it stands in `content` as text."""
    if isinstance(result.get("structuredContent", {}), dict):
        return dict(result)
    return {name: member for name, member in result.items() if name != "structuredContent"}
