"""The methods of 2025-11-25 and 2025-06-18, and what these versions have of a result.

They are served without sessions: see `protocol.session_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol.capabilities import has_tasks, shows_apps
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
from mcp_roundtrip.protocol.results import call_tool_result
from mcp_roundtrip.protocol.session_id import NONCE_BYTES, SessionId
from mcp_roundtrip.server.admission import UnknownResource
from mcp_roundtrip.server.lists import FeatureList, ListedTool, ListItem, ToolList
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.plan import ClientAbilities, Plan
from mcp_roundtrip.server.views import view_capabilities

_LATER_MEMBERS: Final = frozenset({"ttlMs", "cacheScope"})
"""Members of results that these versions do not have."""


def legacy_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the members that these versions do not have."""
    later = _LATER_MEMBERS | ({"resultType"} if result.get("resultType") == "complete" else set())
    return {name: member for name, member in call_tool_result(result).items() if name not in later}


RESOURCE_NOT_FOUND: Final = -32002
"""2025-11-25, server/resources "Error Handling"."""

_INITIALIZE_MEMBERS: Final = (
    ("protocolVersion", str, f'a string such as "{LEGACY_VERSION}"'),
    ("capabilities", dict, "an object"),
    ("clientInfo", dict, "an object with name and version"),
)


def make_legacy_handlers(
    features: Mapping[str, Mapping[str, Handler]],
    tools: Mapping[str, ListedTool],
    *,
    has_views: bool,
    serves_dialect: bool,
) -> dict[str, Handler]:
    """Return the handler of each method.

    `features`: the handlers of the later versions, by capability.
    `serves_dialect`: whether calls can become tasks in the dialect of `legacy_tasks`.
    """
    tasks: Mapping[str, Handler] = {}
    if serves_dialect:
        from mcp_roundtrip.server.legacy_tasks import TASK_HANDLERS  # off by default

        tasks = TASK_HANDLERS
    later = {method: each for methods in features.values() for method, each in methods.items()}
    lists = (_LegacyToolList(tools), _LegacyToolList(tools, knows_tasks=bool(tasks)))
    return {
        **{method: partial(_adapt, handler) for method, handler in later.items()},
        INITIALIZE: partial(_initialize, tuple(features), bool(tasks), has_views),
        PING: lambda context: Reply({}),
        TOOLS_LIST: lambda context: lists[has_tasks(context.request.meta.protocol_version)](context),
        **{method: partial(_call_with_tasks, handler) for method, handler in tasks.items()},
    }


def _initialize(
    features: Sequence[str], serves_tasks: bool, has_views: bool, context: RequestContext
) -> Reply:
    requested = _requested_version(context.params)
    version = requested if requested in LEGACY_VERSIONS else LEGACY_VERSION
    # No `logging`: the level that `logging/setLevel` sets would have to be stored. A client that names a
    # level in `_meta`, as those of 2026-07-28 do, gets log messages.
    capabilities: dict[str, Any] = {feature: {} for feature in features}
    if serves_tasks and has_tasks(version):
        capabilities["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    if has_views and shows_apps(context.params["capabilities"]):
        capabilities = view_capabilities(capabilities)
    options = context.options
    result = {
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": options.implementation,
        **({} if options.instructions is None else {"instructions": options.instructions}),
    }
    # The session id holds what the client declares with this request.
    params, random = context.params, context.ports.random_bytes(NONCE_BYTES)
    log_level = context.request.meta.log_level
    session = SessionId.create(version, params["clientInfo"], params["capabilities"], random, log_level)
    return Reply(result, headers={HEADER_SESSION_ID: session.encode()})


def _requested_version(params: Mapping[str, Any]) -> str:
    """Return `protocolVersion` of an InitializeRequest. Raises ProtocolError -32602."""
    for name, kind, expected in _INITIALIZE_MEMBERS:
        if not isinstance(params.get(name), kind):
            raise ProtocolError(INVALID_PARAMS, f"Invalid params: initialize needs {name}, {expected}")
    version: str = params["protocolVersion"]
    return version


def _call_with_tasks(handler: Handler, context: RequestContext) -> Reply | HttpResponse:
    if not has_tasks(context.request.meta.protocol_version):
        raise unknown_method(context.request.method)
    return handler(context)


def _adapt(handler: Handler, context: RequestContext) -> Reply | HttpResponse:
    """Call a handler of the later versions, and return a reply that these versions have."""
    try:
        reply = handler(context)
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

    def new_list(self, items: Mapping[str, ListItem], parks_calls: bool) -> FeatureList:
        """Return a list. These clients know no `cacheScope`."""
        return _LegacyList("tools", items, self.is_constant, _reported=self._reported)

    def definition(self, name: str, client: ClientAbilities, plan: Plan) -> dict[str, Any]:
        members = super().definition(name, client, plan)
        # Structured content is an object in these versions, so an output schema of another type has no place.
        if members.get("outputSchema", {}).get("type") != "object":
            members.pop("outputSchema", None)
        if self.knows_tasks and (task := self.tools[name].task) is not None:
            members["execution"] = {"taskSupport": task}
        return members


class _LegacyList(FeatureList):
    def page(self, context: RequestContext) -> dict[str, Any]:
        return legacy_result(super().page(context))
