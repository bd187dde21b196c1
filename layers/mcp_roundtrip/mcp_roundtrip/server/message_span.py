"""The span of a message: what OpenTelemetry's semantic conventions for MCP ask of a server.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip.auth.callers import InsufficientScope
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.observing.tracing import Attribute, Span, Tracer
from mcp_roundtrip.protocol.canonical import digest
from mcp_roundtrip.protocol.constants import FEATURE_KINDS, TOOLS_CALL
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST
from mcp_roundtrip.protocol.trace import TraceContext
from mcp_roundtrip.server.model import Reply, RequestContext
from mcp_roundtrip.server.pass_span import tag_log_lines

MAX_REQUEST_ID: Final = 128
"""Characters of a request's id that a span keeps. The client chooses the id."""

_FEATURES: Final[Mapping[str, tuple[str, bool]]] = {
    "tool": ("gen_ai.tool.name", True),
    "prompt": ("gen_ai.prompt.name", True),
    "resource": ("mcp.resource.uri", False),
}
"""Kind of a feature -> its attribute, and whether its name belongs to the name of the span.

`mcp.resource.uri` is the URI or the URI template of the registration: the variables of a requested URI are
arguments.
"""

_LOG_FIELDS: Final[Mapping[str, str]] = {
    "round": "mcp_roundtrip.round",
    "outcome": "mcp_roundtrip.outcome",
    "task": "mcp_roundtrip.task.id",
}
"""Field of `request_completed` and `request_refused` -> attribute."""


def traced_message(
    tracer: Tracer, reply_to: Callable[[RequestContext], Reply | HttpResponse], context: RequestContext
) -> Reply | HttpResponse:
    """Return the reply that `reply_to` makes in the span of its message. Raises what that raises."""
    trace = TraceContext.from_meta(context.request.meta.trace)
    with tracer.span(
        context.request.method,
        "server",
        _request_attributes(context),
        parent=context.invocation.forwarded.trace or trace.traceparent,
        tracestate=trace.tracestate,
        links=[trace.tracelink],
    ) as span:
        tag_log_lines(context, span)
        try:
            reply = reply_to(context)
        except Exception as error:
            _fail(span, _error_code(error))
            _describe(span, context.request.method, getattr(error, "log_fields", {}))
            raise
        _describe_reply(span, context.request.method, reply)
        return reply


def describe_feature(tracer: Tracer, method: str, name: str) -> None:
    """Add the feature for which a message is forwarded to the current span."""
    kind = FEATURE_KINDS.get(method)
    attributes, span_name = _feature_attributes(method, {} if kind is None else {kind: name})
    tracer.annotate(attributes, name=span_name)


def _request_attributes(context: RequestContext) -> dict[str, Attribute]:
    request = context.request
    attributes: dict[str, Attribute] = {
        "mcp.method.name": request.method,
        "mcp.protocol.version": request.meta.protocol_version,
        "jsonrpc.request.id": str(request.id)[:MAX_REQUEST_ID],
    }
    if request.method == TOOLS_CALL:
        attributes["gen_ai.operation.name"] = "execute_tool"
    if context.headers is not None:  # a direct invocation has no HTTP request
        attributes |= {"network.transport": "tcp", "network.protocol.name": "http"}
    if context.session_nonce is not None:
        # The id of a session identifies its client to the server, so a span has a digest of it.
        attributes["mcp.session.id"] = digest("mcp-rs/v1/span-session", context.session_nonce, size=12)
    return attributes


def _describe_reply(span: Span, method: str, reply: Reply | HttpResponse) -> None:
    if isinstance(reply, HttpResponse):  # the owner's, which the front door does not read
        status = reply.raw.get("statusCode") if isinstance(reply.raw, Mapping) else reply.status
        if isinstance(status, int) and status >= 400:
            span.fail(str(status))
        return
    _describe(span, method, reply.log_fields)
    if isinstance(reply.body, ProtocolError):
        _fail(span, reply.body.code)
    elif reply.body.get("isError"):
        span.fail("tool_error")


def _describe(span: Span, method: str, log_fields: Mapping[str, Any]) -> None:
    attributes, name = _feature_attributes(method, log_fields)
    attributes |= {_LOG_FIELDS[each]: value for each, value in log_fields.items() if each in _LOG_FIELDS}
    for attribute, value in attributes.items():
        span.set_attribute(attribute, value)
    if name is not None:
        span.rename(name)


def _feature_attributes(method: str, fields: Mapping[str, Any]) -> tuple[dict[str, Attribute], str | None]:
    """Return the attributes of the feature that the fields name, and the name of the span."""
    for kind, (attribute, is_target) in _FEATURES.items():
        if kind in fields:
            name = str(fields[kind])
            return {attribute: name}, f"{method} {name}" if is_target else None
    return {}, None


def _error_code(error: Exception) -> int:
    if isinstance(error, ProtocolError):
        return error.code
    return INVALID_REQUEST if isinstance(error, InsufficientScope) else INTERNAL_ERROR


def _fail(span: Span, code: int) -> None:
    span.fail(str(code))
    span.set_attribute("rpc.response.status_code", str(code))
