"""`subscriptions/listen`: every subscription is declined, in the form the specification has for that.

A function answers and ends: it can hold no stream open, and nothing would tell it what to send. So the
stream is complete when it begins: an acknowledgement that agrees to none of the notification types, then the
result that ends the subscription gracefully (basic/patterns/subscriptions, "Graceful Closure").

Clients have to accept `text/event-stream` (basic/transports/streamable-http, "Sending Messages"). One that
does not gets the result alone, which tells it that the subscription is over; no other message could reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.errors import INVALID_PARAMS, MissingClientCapability, ProtocolError
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.protocol.capabilities import TASKS, missing_capabilities
from mcp_roundtrip.protocol.methods import META_SERVER_INFO, SUBSCRIPTIONS_LISTEN
from mcp_roundtrip.server.model import Handler, RequestContext
from mcp_roundtrip.server.round import Reply

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

TASK_IDS: Final = "taskIds"
"""SEP-2663, "Task Status Notifications"."""

_FLAGS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_LISTS: Final = ("resourceSubscriptions", TASK_IDS)


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The one method of subscriptions."""

    server_info: Mapping[str, Any]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {SUBSCRIPTIONS_LISTEN: self._listen}

    def _listen(self, context: RequestContext) -> Reply:
        requested = context.route.params.get("notifications")
        if not isinstance(requested, dict):
            raise _invalid("notifications", "an object")
        required = missing_capabilities(context.route.meta.capabilities, [TASKS])
        if TASK_IDS in requested and required:
            raise MissingClientCapability(required, needed_by=context.route.method)
        _check(requested)
        tag = {META_SUBSCRIPTION_ID: context.route.id}
        acknowledged = jsonrpc.notification(ACKNOWLEDGED, {"_meta": tag, "notifications": {}})
        result = {"resultType": "complete", "_meta": {**tag, META_SERVER_INFO: self.server_info}}
        return Reply(result, (acknowledged,), {"outcome": "declined"})


def _check(requested: Mapping[str, Any]) -> None:
    """The types of the filter's members; unknown ones are nobody's here. Raises -32602."""
    for name in _FLAGS:
        if not isinstance(requested.get(name, False), bool):
            raise _invalid(f"notifications.{name}", "a boolean")
    for name in _LISTS:
        value = requested.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _invalid(f"notifications.{name}", "an array of strings")


def _invalid(member: str, said: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {member} must be {said}")
