"""The methods of 2025-11-25 and 2025-06-18, and what these versions have of a result.

They are served without sessions: see `protocol.session_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import (
    HEADER_SESSION_ID,
    INITIALIZE,
    LEGACY_VERSION,
    LEGACY_VERSIONS,
    PING,
    TOOLS_LIST,
)
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.request_validation import unknown_method
from mcp_roundtrip.protocol.session_id import NONCE_BYTES, SessionId
from mcp_roundtrip.server.admission import UnknownResource
from mcp_roundtrip.server.lists import FeatureList, Listable, ListedTool, ToolList
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions, TaskSupport
from mcp_roundtrip.server.plan import ClientAbilities
from mcp_roundtrip.server.views import view_capabilities

_LATER_MEMBERS: Final = frozenset({"ttlMs", "cacheScope"})
"""Members of results that these versions do not have."""


def has_tasks(version: str) -> bool:
    """Return whether this version of the protocol has tasks."""
    return version == LEGACY_VERSION


def legacy_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the members that these versions do not have."""
    later = _LATER_MEMBERS | ({"resultType"} if result.get("resultType") == "complete" else set())
    return {name: member for name, member in call_tool_result(result).items() if name not in later}


def call_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CallToolResult without structured content that is no object: `content` has it as text."""
    if isinstance(result.get("structuredContent", {}), dict):
        return dict(result)
    return {name: member for name, member in result.items() if name != "structuredContent"}


RESOURCE_NOT_FOUND: Final = -32002
"""2025-11-25, server/resources "Error Handling"."""

_INITIALIZE_MEMBERS: Final = (
    ("protocolVersion", str, f'a string such as "{LEGACY_VERSION}"'),
    ("capabilities", dict, "an object"),
    ("clientInfo", dict, "an object with name and version"),
)


class LegacyMethods(Struct, frozen=True, dict=True):  # dict: the lists are created once
    """The handlers of all methods.

    `features`: the handlers of the later versions, by capability.
    `tasks`: the handlers of the task methods; empty if no call can become a task.
    """

    options: ServerOptions
    features: Mapping[str, Mapping[str, Handler]]
    tools: Mapping[str, ListedTool]
    tasks: Mapping[str, Handler] = field(default_factory=dict)
    has_views: bool = False

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each method."""
        served = {
            method: _Adapted(handler)
            for methods in self.features.values()
            for method, handler in methods.items()
        }
        return {
            **served,
            INITIALIZE: self._initialize,
            PING: self._ping,
            TOOLS_LIST: self._list_tools,
            **{method: _OnlyWithTasks(handler) for method, handler in self.tasks.items()},
        }

    def _ping(self, context: RequestContext) -> Reply:
        return Reply({})

    def _list_tools(self, context: RequestContext) -> Reply:
        return self._tool_lists[self._knows_tasks(context)](context)

    @cached_property
    def _tool_lists(self) -> Mapping[bool, _LegacyToolList]:
        return {knows_tasks: self._tool_list(knows_tasks) for knows_tasks in (False, True)}

    def _knows_tasks(self, context: RequestContext) -> bool:
        return bool(self.tasks) and has_tasks(context.request.meta.protocol_version)

    def _tool_list(self, knows_tasks: bool) -> _LegacyToolList:
        return _LegacyToolList(self.options, self.tools, knows_tasks=knows_tasks)

    def _initialize(self, context: RequestContext) -> Reply:
        requested = _requested_version(context.params)
        version = requested if requested in LEGACY_VERSIONS else LEGACY_VERSION
        # No `logging`: the level that `logging/setLevel` sets would have to be stored. A client that names a
        # level in `_meta`, as those of 2026-07-28 do, gets log messages.
        capabilities: dict[str, Any] = {feature: {} for feature in self.features}
        if self.tasks and has_tasks(version):
            capabilities["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if self.has_views and shows_apps(context.params["capabilities"]):
            capabilities = view_capabilities(capabilities)
        instructions = self.options.instructions
        result = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": self.options.implementation,
            **({} if instructions is None else {"instructions": instructions}),
        }
        return Reply(result, headers={HEADER_SESSION_ID: _new_session_id(context, version)})


def _requested_version(params: Mapping[str, Any]) -> str:
    """Return `protocolVersion` of an InitializeRequest. Raises ProtocolError -32602."""
    for name, kind, expected in _INITIALIZE_MEMBERS:
        if not isinstance(params.get(name), kind):
            raise ProtocolError(INVALID_PARAMS, f"Invalid params: initialize needs {name}, {expected}")
    version: str = params["protocolVersion"]
    return version


def _new_session_id(context: RequestContext, version: str) -> str:
    """Return a session id that holds what the client declares with this request."""
    params, meta = context.params, context.request.meta
    random = context.ports.random_bytes(NONCE_BYTES)
    return SessionId.create(
        version, params["clientInfo"], params["capabilities"], random, meta.log_level
    ).encode()


class _OnlyWithTasks(Struct, frozen=True):
    """A handler of tasks, which clients of versions without tasks cannot call."""

    handler: Handler

    def __call__(self, context: RequestContext) -> Reply | HttpResponse:
        """Return the reply. Raises ProtocolError."""
        if not has_tasks(context.request.meta.protocol_version):
            raise unknown_method(context.request.method)
        return self.handler(context)


class _Adapted(Struct, frozen=True):
    """A handler of the later versions, with replies that these versions have."""

    handler: Handler

    def __call__(self, context: RequestContext) -> Reply | HttpResponse:
        """Return the reply. Raises ProtocolError or InsufficientScope."""
        try:
            reply = self.handler(context)
        except UnknownResource as error:
            raise _resource_not_found(error) from None
        if isinstance(reply, HttpResponse):
            return reply  # the function that owns the feature has written its own response
        if isinstance(reply.body, UnknownResource):
            return replace(reply, body=_resource_not_found(reply.body))
        if isinstance(reply.body, ProtocolError):
            return reply
        return replace(reply, body=legacy_result(reply.body))


def _resource_not_found(error: UnknownResource) -> ProtocolError:
    return ProtocolError(RESOURCE_NOT_FOUND, error.message, error.data)


class _LegacyToolList(ToolList):
    is_constant: bool = True
    knows_tasks: bool = False

    def list_for(self, client: ClientAbilities, parks_calls: bool) -> FeatureList:
        """Return the list for clients of one kind. These clients know no `cacheScope`."""
        tools = {
            name: LegacyToolDefinition(item, self._task_support(name))
            for name, item in self.items(client).items()
        }
        return _LegacyList(self.options, "tools", tools, self.is_constant, _reported=self._reported)

    def _task_support(self, name: str) -> TaskSupport | None:
        return self.tools[name].task if self.knows_tasks and name in self.tools else None


class LegacyToolDefinition(Struct, frozen=True):
    """The Tool object of these versions, for `tools/list`; `task` is the support that the client knows."""

    tool: Listable
    task: TaskSupport | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the tool."""
        return self.tool.scopes

    def definition(self) -> Mapping[str, Any]:
        """Build the object."""
        members = dict(self.tool.definition())
        # Structured content is an object in these versions, so an output schema of another type has no place.
        if members.get("outputSchema", {}).get("type") != "object":
            members.pop("outputSchema", None)
        if self.task is not None:
            members["execution"] = {"taskSupport": self.task}
        return members


class _LegacyList(FeatureList):
    def page(self, context: RequestContext) -> dict[str, Any]:
        """Return the result without the members of later versions."""
        return legacy_result(super().page(context))
