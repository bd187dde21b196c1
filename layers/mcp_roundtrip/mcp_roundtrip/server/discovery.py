"""The methods that every server has: `server/discover`, `tools/list`, and `subscriptions/listen`.

`lists` has the second; the third is declined.

A Lambda function cannot hold a stream open, and nothing would notify it of changes. So the stream of a
subscription is complete when it begins: an acknowledgement that accepts none of the notification types, then
the result that ends the subscription gracefully (basic/patterns/subscriptions, "Graceful Closure"). A client
that does not accept `text/event-stream` gets the result only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol import jsonrpc, results
from mcp_roundtrip.protocol.capabilities import TASKS, shows_apps
from mcp_roundtrip.protocol.constants import (
    DISCOVER,
    META_SERVER_INFO,
    SKILLS_EXTENSION,
    SUBSCRIPTIONS_LISTEN,
    TASKS_EXTENSION,
    TOOLS_LIST,
)
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.lists import ListedTool, ToolList
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.views import view_capabilities

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

TASK_IDS: Final = "taskIds"
"""SEP-2663, "Task Status Notifications"."""

_FLAGS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_LISTS: Final = ("resourceSubscriptions", TASK_IDS)


def make_handlers(
    options: ServerOptions,
    features: tuple[str, ...],
    tools: Mapping[str, ListedTool],
    has_tasks: bool,
    has_views: bool,
    has_skills: bool,
    *,
    is_constant: bool,
) -> dict[str, Handler]:
    """Return the handler of each method for a server with these `features` ("tools", "prompts" …).

    `has_views`: whether clients that show MCP Apps can read views. `is_constant`: see `ToolList`.
    """
    discovery = _Discovery(options, features, has_tasks, has_views, has_skills)
    return {
        DISCOVER: discovery,
        SUBSCRIPTIONS_LISTEN: decline_subscription,
        TOOLS_LIST: ToolList(tools, is_constant),
    }


class _Discovery(Struct, frozen=True):
    options: ServerOptions
    features: tuple[str, ...]
    has_tasks: bool
    has_views: bool
    has_skills: bool

    def __call__(self, context: RequestContext) -> Reply:
        options = self.options
        # `logging`, because any feature may send log messages to a client that requests them.
        capabilities: dict[str, Any] = {**{feature: {} for feature in self.features}, "logging": {}}
        extensions: dict[str, Any] = {TASKS_EXTENSION: {}} if self.has_tasks else {}
        if self.has_skills:
            extensions[SKILLS_EXTENSION] = {"directoryRead": True}
        if extensions:
            capabilities["extensions"] = extensions
        is_varied = self.has_views and shows_apps(context.request.meta.capabilities)
        if is_varied:
            capabilities = view_capabilities(capabilities)
        result = results.discover(
            options.implementation, capabilities, options.instructions, options.list_ttl_ms
        )
        return Reply({**result, "cacheScope": "private"} if is_varied else result)


def decline_subscription(context: RequestContext) -> Reply:
    """End a subscription gracefully. Raises ProtocolError -32602 or MissingClientCapability."""
    requested = context.params.get("notifications")
    if not isinstance(requested, dict):
        raise _invalid_param("notifications", "an object")
    requested = jsonrpc.without_null_members(requested)
    if TASK_IDS in requested:
        require_capabilities(context, [TASKS])
    _check_filter(requested)
    tag = {META_SUBSCRIPTION_ID: context.request.id}
    acknowledged = jsonrpc.notification(ACKNOWLEDGED, {"_meta": tag, "notifications": {}})
    meta = {**tag, META_SERVER_INFO: context.options.server_info}
    return Reply({"resultType": "complete", "_meta": meta}, (acknowledged,), {"outcome": "declined"})


def _check_filter(requested: Mapping[str, Any]) -> None:
    """Check the types of the known members of the filter. Raises ProtocolError -32602."""
    for name in _FLAGS:
        if not isinstance(requested.get(name, False), bool):
            raise _invalid_param(f"notifications.{name}", "a boolean")
    for name in _LISTS:
        value = requested.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _invalid_param(f"notifications.{name}", "an array of strings")


def _invalid_param(member: str, expected: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {member} must be {expected}")
