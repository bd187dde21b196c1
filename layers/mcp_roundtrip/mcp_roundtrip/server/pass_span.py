"""The spans of passes and steps, and how the rounds of a call are connected.

The state of a flow carries the span context of the message of its first round. The passes of later rounds and
of workers are children of that span, so that one trace has the whole call with every client. A client that
sends its own trace context with a request gets the pass in that trace. In both cases links connect the pass,
the message of its round, and the first round.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.replay import Failed, Outcome, outcome_name
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.observing.tracing import Attribute, Span, SpanKind, Tracer
from mcp_roundtrip.protocol.trace import TraceContext
from mcp_roundtrip.server.model import FeatureCall, RequestContext

RunPass = Callable[[FeatureCall, Run], Outcome]


def traced_pass(tracer: Tracer, call: FeatureCall, run: Run, run_pass: RunPass) -> Outcome:
    """Run a pass in its span. Raises what `run_pass` raises."""
    with _pass_span(tracer, call, run) as span:
        tag_log_lines(call.context, span)
        outcome = run_pass(call, run)
        if isinstance(outcome, Failed):
            span.set_attribute("mcp_roundtrip.outcome", "failed")
            span.fail(type(outcome.error).__name__)
        else:
            span.set_attribute("mcp_roundtrip.outcome", outcome_name(outcome))
        return outcome


def tag_log_lines(context: RequestContext, span: Span) -> None:
    """Add the ids of a span to the following log lines of the invocation."""
    if (traceparent := span.traceparent) is not None:
        context.tag(trace_id=traceparent[3:35], span_id=traceparent[36:52])


def step_span(tracer: Tracer, key: str, attempt: int | None) -> AbstractContextManager[Span]:
    """Return the span of a step's function, which runs now. A replayed step has no span."""
    attributes: dict[str, Attribute] = {"mcp_roundtrip.step": key}
    if attempt is not None:
        attributes["mcp_roundtrip.attempt"] = attempt
    return tracer.span(f"step {key}", "internal", attributes)


def creation_span(tracer: Tracer, call: FeatureCall, journal: Journal) -> AbstractContextManager[Span]:
    """Return the span in which a call becomes a task."""
    parent, links = (None, [journal.trace]) if _has_parent(call) else (journal.trace, [tracer.current()])
    name = f"create task {call.feature.name}"
    return tracer.span(
        name, "producer", {"mcp_roundtrip.flow.id": journal.flow_id}, parent=parent, links=links
    )


def _pass_span(tracer: Tracer, call: FeatureCall, run: Run) -> AbstractContextManager[Span]:
    """Return the span of a pass, and let the journal carry the context of the first round's message."""
    message, first = tracer.current(), run.history.journal.trace
    is_worker = run.tasks.recorder is not None and not run.tasks.is_parked
    attributes: dict[str, Attribute] = {
        "mcp_roundtrip.flow.id": run.history.journal.flow_id,
        "mcp_roundtrip.feature": call.feature.name,
    }
    name = f"{'work on' if is_worker else 'pass'} {call.feature.name}"
    kind: SpanKind = "consumer" if is_worker else "internal"
    if first is None or first == message:  # the first round, of which this may be the second pass
        run.history.journal = replace(run.history.journal, trace=message)
        return tracer.span(name, kind, attributes)
    if is_worker:
        attributes["mcp_roundtrip.task.id"] = str(call.context.request.id)
        return tracer.span(name, kind, attributes, parent=first, links=[run.tasks.created_in, message])
    tracer.annotate({}, link=first)
    if _has_parent(call):
        return tracer.span(name, kind, attributes, links=[first])
    return tracer.span(name, kind, attributes, parent=first, links=[message])


def _has_parent(call: FeatureCall) -> bool:
    """Return whether the client sent the trace context of its request."""
    return TraceContext.from_meta(call.context.request.meta.trace).traceparent is not None
