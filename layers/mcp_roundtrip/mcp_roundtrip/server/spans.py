"""The spans of messages, passes and steps. Only a deployment that traces loads this module.

A message has the attributes of OpenTelemetry's semantic conventions for MCP
(https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md).

The state of a flow carries the span context of the message of its first round. The passes of later rounds and
of workers are children of that span, so that one trace has the whole call with every client. A client that
sends its own trace context with a request gets the pass in that trace. In both cases links connect the pass,
the message of its round, and the first round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from opentelemetry.trace import Span, SpanKind, format_span_id, format_trace_id, get_current_span

from mcp_roundtrip.auth.callers import InsufficientScope
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcomes import Failed, Outcome
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.observing.opentelemetry_tracer import (
    Attribute,
    Tracer,
    fail,
    fail_with_class,
    span_context,
    traceparent_of,
)
from mcp_roundtrip.protocol.constants import FEATURE_KINDS, TOOLS_CALL
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST
from mcp_roundtrip.protocol.strict_json import digest
from mcp_roundtrip.protocol.trace import TraceContext
from mcp_roundtrip.server.lambda_invocation import Spans
from mcp_roundtrip.server.request_types import FeatureCall, Handler, Reply, RequestContext
from mcp_roundtrip.tasks.model import Task

MAX_REQUEST_ID: Final = 128
"""Characters of a request's id that a span keeps. The client chooses the id."""

_FEATURES: Final[Mapping[str, tuple[str, bool]]] = {
    "tool": ("gen_ai.tool.name", True),
    "prompt": ("gen_ai.prompt.name", True),
    "resource": ("mcp.resource.uri", False),
}
"""Kind of a feature -> its attribute, and whether the name of the span has the feature's. `mcp.resource.uri`
is the URI or the URI template of the registration: the variables of a requested URI are arguments."""

_LOG_FIELDS: Final[Mapping[str, str]] = {
    "round": "mcp_roundtrip.round",
    "outcome": "mcp_roundtrip.outcome",
    "task": "mcp_roundtrip.task.id",
}
"""Field of `request_completed` and `request_refused` -> attribute."""


class ServerSpans(Spans, frozen=True):
    tracer: Tracer

    def message(self, handler: Handler, context: RequestContext) -> Reply | HttpResponse:
        """Return the reply of a handler, which runs in the span of its message."""
        trace, method = TraceContext.from_meta(context.request.meta.trace), context.request.method
        with self.tracer.span(
            method,
            SpanKind.SERVER,
            _request_attributes(context),
            parent=context.invocation.forwarded.trace or trace.traceparent,
            tracestate=trace.tracestate,
            on_error=partial(_describe_error, method),
        ) as span:
            _tag_log_lines(context, span)
            reply = handler(context)
            _describe_reply(span, method, reply)
            return reply

    def forwarded(self, method: str, feature: str) -> None:
        kind = FEATURE_KINDS.get(method)
        _describe(get_current_span(), method, {} if kind is None else {kind: feature})

    def run_pass(
        self, call: FeatureCall, run: Run, run_pass: Callable[[FeatureCall, Run], Outcome]
    ) -> Outcome:
        run.services = replace(run.services, step_span=partial(_step_span, self.tracer))
        with _pass_span(self.tracer, call, run) as span:
            _tag_log_lines(call.context, span)
            outcome = run_pass(call, run)
            if isinstance(outcome, Failed):
                span.set_attribute("mcp_roundtrip.outcome", "failed")
                fail_with_class(span, outcome.error)
            else:
                span.set_attribute("mcp_roundtrip.outcome", outcome.name)
            return outcome

    def create_task(self, call: FeatureCall, journal: Journal, create: Callable[..., Task]) -> Task:
        """Return the task that `create` makes of a call, with the context of the span as `created_in`."""
        parent, links = journal.trace, [self.tracer.current()]
        if _has_parent(call):
            parent, links = None, [journal.trace]
        attributes = {"mcp_roundtrip.flow.id": journal.flow_id}
        name = f"create task {call.feature.name}"
        with self.tracer.span(name, SpanKind.PRODUCER, attributes, parent=parent, links=links) as span:
            task = create(created_in=traceparent_of(span))
            span.set_attribute("mcp_roundtrip.task.id", task.task_id)
            return task


# -- messages -----------------------------------------------------------------------------------------------


def _tag_log_lines(context: RequestContext, span: Span) -> None:
    """Add the ids of a span to the following log lines of the invocation, and to its audit record."""
    ids = span.get_span_context()
    if ids.is_valid:
        context.tag(trace_id=format_trace_id(ids.trace_id), span_id=format_span_id(ids.span_id))


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
    if request.meta.session_nonce is not None:
        # The id of a session identifies its client to the server, so a span has a digest of it.
        attributes["mcp.session.id"] = digest("mcp-rs/v1/span-session", request.meta.session_nonce, size=12)
    return attributes


def _describe_reply(span: Span, method: str, reply: Reply | HttpResponse) -> None:
    if isinstance(reply, HttpResponse):  # the owner's, which the front door does not read
        status = reply.raw.get("statusCode") if isinstance(reply.raw, Mapping) else reply.status
        if isinstance(status, int) and status >= 400:
            fail(span, str(status))
        return
    _describe(span, method, reply.log_fields)
    if isinstance(reply.body, ProtocolError):
        _fail_with_code(span, reply.body.code)
    elif reply.body.get("isError"):
        fail(span, "tool_error")


def _describe_error(method: str, span: Span, error: Exception) -> None:
    refused = INVALID_REQUEST if isinstance(error, InsufficientScope) else INTERNAL_ERROR
    _fail_with_code(span, error.code if isinstance(error, ProtocolError) else refused)
    _describe(span, method, getattr(error, "log_fields", {}))


def _fail_with_code(span: Span, code: int) -> None:
    fail(span, str(code))
    span.set_attribute("rpc.response.status_code", str(code))


def _describe(span: Span, method: str, log_fields: Mapping[str, Any]) -> None:
    """Add the feature, which the name of the span has, too, and what the log says about the end."""
    for kind, (attribute, is_target) in _FEATURES.items():
        if kind in log_fields:
            span.set_attribute(attribute, str(log_fields[kind]))
            if is_target:
                span.update_name(f"{method} {log_fields[kind]}")
    for field, attribute in _LOG_FIELDS.items():
        if field in log_fields:
            span.set_attribute(attribute, log_fields[field])


# -- passes -------------------------------------------------------------------------------------------------


def _step_span(tracer: Tracer, key: str, attempt: int | None) -> AbstractContextManager[Span]:
    """Return the span of a step's function, which runs now. A replayed step has no span."""
    attributes: dict[str, Attribute] = {"mcp_roundtrip.step": key}
    if attempt is not None:
        attributes["mcp_roundtrip.attempt"] = attempt
    return tracer.span(f"step {key}", SpanKind.INTERNAL, attributes)


def _pass_span(tracer: Tracer, call: FeatureCall, run: Run) -> AbstractContextManager[Span]:
    """Return the span of a pass, and let the journal carry the context of the first round's message."""
    message, first = tracer.current(), run.history.journal.trace
    attributes: dict[str, Attribute] = {
        "mcp_roundtrip.flow.id": run.history.journal.flow_id,
        "mcp_roundtrip.feature": call.feature.name,
    }
    name, kind = f"pass {call.feature.name}", SpanKind.INTERNAL
    if run.is_task:
        name, kind = f"work on {call.feature.name}", SpanKind.CONSUMER
    if first is None:  # the first round
        run.history.journal = replace(run.history.journal, trace=message)
        return tracer.span(name, kind, attributes)
    if run.is_task:
        attributes["mcp_roundtrip.task.id"] = str(call.context.request.id)
        return tracer.span(name, kind, attributes, parent=first, links=[run.task.created_in, message])
    get_current_span().add_link(span_context(first))
    if _has_parent(call):
        return tracer.span(name, kind, attributes, links=[first])
    return tracer.span(name, kind, attributes, parent=first, links=[message])


def _has_parent(call: FeatureCall) -> bool:
    return TraceContext.from_meta(call.context.request.meta.trace).traceparent is not None
