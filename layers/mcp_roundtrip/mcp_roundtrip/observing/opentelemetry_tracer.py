"""The tracer on OpenTelemetry, which only a deployment that traces loads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    StatusCode,
    TraceFlags,
    TracerProvider,
    TraceState,
)

from mcp_roundtrip.observing.tracing import FLUSH_MS, Attribute, Span, SpanKind

SCOPE: Final = "mcp_roundtrip"
"""The instrumentation scope of the spans."""

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the semantic conventions that the attributes follow."""

_KINDS: Final[Mapping[SpanKind, trace.SpanKind]] = {
    "server": trace.SpanKind.SERVER,
    "internal": trace.SpanKind.INTERNAL,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}

# https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
_X_RAY: Final = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24});Parent=([0-9a-f]{16});Sampled=1(?:;|$)")


class OpenTelemetrySpan:
    """A span of OpenTelemetry."""

    __slots__ = ("_span", "has_failed")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.has_failed = False

    @property
    def traceparent(self) -> str | None:
        return _to_text(self._span.get_span_context())

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set_attribute(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)

    def fail(self, error_type: str) -> None:
        self.has_failed = True
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(StatusCode.ERROR)


class OpenTelemetryTracer:
    """A `tracing.Tracer`. `x_ray_header` returns the X-Ray trace header of the invocation."""

    def __init__(
        self, provider: TracerProvider, x_ray_header: Callable[[], str | None], flush_ms: int = FLUSH_MS
    ) -> None:
        self._provider = provider
        self._flush_ms = flush_ms
        self._export: Thread | None = None
        self._tracer = provider.get_tracer(SCOPE, schema_url=SCHEMA_URL)
        self._x_ray_header = x_ray_header

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, Attribute],
        *,
        parent: str | None = None,
        tracestate: str | None = None,
        links: Sequence[str | None] = (),
    ) -> Iterator[Span]:
        ambient = trace.get_current_span().get_span_context()
        context = _from_text(parent, tracestate)
        if context is None and not ambient.is_valid:
            context = _from_x_ray(self._x_ray_header())
        with self._tracer.start_as_current_span(
            name,
            None if context is None else trace.set_span_in_context(NonRecordingSpan(context)),
            _KINDS[kind],
            attributes,
            [Link(linked) for each in links if (linked := _from_text(each)) is not None],
            record_exception=False,  # its text may quote arguments
            set_status_on_exception=False,
        ) as started:
            span = OpenTelemetrySpan(started)
            try:
                yield span
            except Exception as error:
                if not span.has_failed:
                    span.fail(type(error).__name__)
                raise

    def current(self) -> str | None:
        return _to_text(trace.get_current_span().get_span_context())

    def annotate(
        self, attributes: Mapping[str, Attribute], *, name: str | None = None, link: str | None = None
    ) -> None:
        span = trace.get_current_span()
        span.set_attributes(attributes)
        if name is not None:
            span.update_name(name)
        if (linked := _from_text(link)) is not None:
            span.add_link(linked)

    def flush(self) -> None:
        # The providers of the SDK have this method; the interface does not.
        force_flush = getattr(self._provider, "force_flush", None)
        if force_flush is None:
            return
        # The SDK's BatchSpanProcessor ignores the timeout: an endpoint that is down would take seconds of
        # each response. An export that takes longer continues in the next invocation.
        deadline = time.monotonic() + self._flush_ms / 1000
        if self._export is not None:
            self._export.join(self._flush_ms / 1000)
            if self._export.is_alive():
                return
        self._export = Thread(target=force_flush, args=(self._flush_ms,), daemon=True)
        self._export.start()
        self._export.join(max(0.0, deadline - time.monotonic()))


def _to_text(context: SpanContext) -> str | None:
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags.sampled):02x}"


def _from_text(traceparent: str | None, tracestate: str | None = None) -> SpanContext | None:
    if traceparent is None:
        return None
    _, trace_id, span_id, flags = traceparent.split("-")
    state = None if tracestate is None else TraceState.from_header([tracestate])
    return _remote(trace_id, span_id, int(flags, 16) & 1, state)


def _from_x_ray(header: str | None) -> SpanContext | None:
    """Return the context of a request that X-Ray samples.

    A request that X-Ray does not sample is no parent: the sampler would drop all of its spans.
    """
    found = None if header is None else _X_RAY.match(header)
    if found is None:
        return None
    return _remote(found[1] + found[2], found[3], 1, None)


def _remote(trace_id: str, span_id: str, flags: int, state: TraceState | None) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), True, TraceFlags(flags), state)
