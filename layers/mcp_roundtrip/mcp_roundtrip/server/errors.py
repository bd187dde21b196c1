"""Maps what a feature raised to a reply for its client and a record for the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_roundtrip.errors import Drift, MissingClientCapability, ProtocolError, ToolError, UsageError
from mcp_roundtrip.internal_errors import CallAborted, KeyServiceError, SettingsError
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, reason_not_sendable

if TYPE_CHECKING:
    from mcp_roundtrip.server.round import Call, Reply


def told_of(call: Call, error: BaseException) -> Reply:
    """The result that tells of the error. Raises ProtocolError or SettingsError for what no result tells."""
    if isinstance(error, BaseExceptionGroup):
        from mcp_roundtrip.server.causes import as_one  # of branches alone

        error = as_one(error)
    call.ports.observer.raised(error)
    if isinstance(error, ToolError):
        return call.told(error, "tool_error")
    if isinstance(error, MissingClientCapability) and error.lost:
        asked = sorted(error.questions)
        call.ports.observer.record("asked_after_steps", **call.named, asked=asked, after=list(error.lost))
    if isinstance(error, ProtocolError):
        error = _checked(error)
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
    return call.told(CallAborted(text), raised)


def _checked(error: ProtocolError) -> ProtocolError | UsageError:
    """The error, or else one that says why it cannot be sent."""
    problem = reason_not_sendable(error)
    if problem is None:
        return error
    refused = UsageError(f"ProtocolError({error.code!r}) cannot be sent: {problem}")
    refused.__cause__ = error
    return refused
