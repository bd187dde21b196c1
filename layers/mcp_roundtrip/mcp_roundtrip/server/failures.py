"""What a client is told of what a feature raised, and what the log is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_roundtrip.errors import Drift, KeyServiceError, ProtocolError, SettingsError, ToolError
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR

if TYPE_CHECKING:
    from mcp_roundtrip.server.calls import Call, Reply


def told_of(call: Call, error: BaseException) -> Reply:
    """The result that tells of the error. Raises ProtocolError or SettingsError for what no result tells."""
    if isinstance(error, BaseExceptionGroup):
        from mcp_roundtrip.server.causes import as_one  # of branches alone

        error = as_one(error)
    if isinstance(error, ToolError):
        return call.told(error, "tool_error")
    if isinstance(error, (ProtocolError, SettingsError)):
        raise error
    if isinstance(error, KeyServiceError):
        raise call.internal(error)
    kind, observer = call.feature.kind, call.ports.observer
    if isinstance(error, Drift):
        observer.failure("drift", error, **call.named)
        text = f"The {kind} changed while this call was under way ({error}). Call it again."
        raise ProtocolError(INTERNAL_ERROR, text)
    raised = f"{kind}_raised"
    observer.failure(raised, error, **call.named)
    text = f"The {kind} failed. Quote {call.invocation.correlation_id} to its operator."
    return call.told(ToolError(text), raised)
