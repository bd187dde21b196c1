"""Make spans with OpenTelemetry.

In states, tasks and the client context of forwarded calls, a span context is text in the form of a
`traceparent` (W3C Trace Context 1). Spans contain names, counts and outcomes, as log lines do: no arguments,
answers, results, tokens or texts of errors.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, Final

from msgspec import Struct
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError, ClientFactory

SCOPE: Final = "mcp_roundtrip"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The instrumentation scope, and the version of the semantic conventions."""

FLUSH_MS: Final = 1_000
"""The longest time that a response waits for the export of its spans."""

Attribute = str | int | float | bool
OnError = Callable[[Span, Exception], None]

# https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
_X_RAY: Final = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24});Parent=([0-9a-f]{16});Sampled=1(?:;|$)")

_PROPAGATOR: Final = TraceContextTextMapPropagator()


def fail(span: Span, error_type: str) -> None:
    """Set the status to ERROR, and `error.type`, which has few values."""
    span.set_attribute("error.type", error_type)
    span.set_status(trace.StatusCode.ERROR)


def fail_with_class(span: Span, error: BaseException) -> None:
    fail(span, type(error).__name__)


def traceparent_of(span: Span) -> str | None:
    """Return the context of a span as text; None if nothing is traced.

    Its only flag is `sampled`: a state with another one would be invalid for an earlier version.
    """
    ids = span.get_span_context()
    if not ids.is_valid:
        return None
    trace_id, span_id = trace.format_trace_id(ids.trace_id), trace.format_span_id(ids.span_id)
    return f"00-{trace_id}-{span_id}-{ids.trace_flags.sampled:02x}"


def span_context(traceparent: str | None) -> trace.SpanContext:
    """Return a context from its text; an invalid one if there is no text."""
    return trace.get_current_span(_extract(traceparent, None, contexts.Context())).get_span_context()


def _extract(traceparent: str | None, tracestate: str | None, base: contexts.Context) -> contexts.Context:
    carrier = {"traceparent": traceparent or "", "tracestate": tracestate or ""}
    return _PROPAGATOR.extract(carrier, base)


class Tracer:
    """Makes the spans of a deployment. Thread-safe. `x_ray_header` returns the header of the invocation."""

    def __init__(
        self, provider: trace.TracerProvider, x_ray_header: Callable[[], str | None], flush_ms: int = FLUSH_MS
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
        on_error: OnError = fail_with_class,
    ) -> Iterator[Span]:
        """Return a span that is the current one until the context is left.

        Without a `parent` it is a child of the current span, or of the span that X-Ray sampled.
        """
        if parent is None and not trace.get_current_span().get_span_context().is_valid:
            parent = _x_ray_traceparent(self._x_ray_header())
        linked = [each for text in links if (each := span_context(text)).is_valid]
        with self._tracer.start_as_current_span(
            name,
            _extract(parent, tracestate, contexts.get_current()),
            kind,
            attributes,
            list(map(trace.Link, linked)),
            record_exception=False,  # its text may quote arguments
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                on_error(span, error)
                raise

    def traced(self, clients: ClientFactory) -> TracedClients:
        return TracedClients(clients, self)

    def current(self) -> str | None:
        """Return the context of the current span as text; None if there is none."""
        return traceparent_of(trace.get_current_span())

    def annotate(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def flush(self) -> None:
        """Export the spans that have ended, within FLUSH_MS: Lambda freezes the process after the response.

        The SDK's BatchSpanProcessor ignores the timeout, so a slow export continues in the next invocation.
        """
        # The providers of the SDK have this method; the interface does not.
        force_flush = getattr(self._provider, "force_flush", None)
        if force_flush is None:
            return
        deadline = time.monotonic() + self._flush_ms / 1000
        if self._export is not None:
            self._export.join(self._flush_ms / 1000)
            if self._export.is_alive():
                return
        self._export = Thread(target=force_flush, args=(self._flush_ms,), daemon=True)
        self._export.start()
        self._export.join(max(0.0, deadline - time.monotonic()))


def _x_ray_traceparent(header: str | None) -> str | None:
    """Return the context of a request that X-Ray samples. As a parent, another would drop all spans."""
    found = _X_RAY.match(header or "")
    return None if found is None else f"00-{found[1]}{found[2]}-{found[3]}-01"


def make_tracer(x_ray_header: Callable[[], str | None], environment: Mapping[str, str]) -> Tracer:
    """Return the tracer of a deployment.

    The provider is that of a layer or of the function's module, or else one for OTLP, which OpenTelemetry's
    environment variables configure. Raises ImportError if the SDK or the exporter is not installed.
    https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
    """
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):
        return Tracer(provider, x_ray_header)
    # A layer may have set a provider without the exporter.
    from mcp_roundtrip.observing.opentelemetry_provider import make_provider

    created = make_provider(environment.get("AWS_LAMBDA_FUNCTION_NAME", "mcp-roundtrip"))
    trace.set_tracer_provider(created)
    return Tracer(created, x_ray_header)


# -- calls of AWS services: OpenTelemetry's semantic conventions, "AWS SDK" ---------------------------------


_SERVICES: Final[Mapping[str, str]] = {
    "dynamodb": "DynamoDB",
    "kms": "KMS",
    "lambda": "Lambda",
    "logs": "CloudWatch Logs",
    "sqs": "SQS",
}
"""Name in endpoints -> the `sdkId` of the service's model."""

_LATE_WRITE_CODES: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""The errors of conditional writes that came too late, which are no failures."""


class TracedClients(Struct, frozen=True):
    """Traces the calls of other clients within a span, not those outside, such as the renewal of a lease."""

    clients: ClientFactory
    tracer: Tracer

    def client(self, service: str) -> AwsClient:
        return TracedClient(self.clients.client(service), service, self.tracer)

    def invoke_client(self) -> AwsClient:
        return TracedClient(self.clients.invoke_client(), "lambda", self.tracer)


class TracedClient(Struct, frozen=True, eq=False):
    """Makes a span of each call of another client, with all attempts."""

    client: AwsClient
    service: str
    tracer: Tracer

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        if self.tracer.current() is None:
            return self.client.call(operation, timeout_s=timeout_s, **parameters)
        service = _SERVICES.get(self.service, self.service)
        attributes = {"rpc.system.name": "aws-api", "rpc.method": f"{service}/{operation}"}
        if self.service == "dynamodb":
            attributes |= {"db.system.name": "aws.dynamodb", "db.operation.name": operation}
        with self.tracer.span(
            f"{service}.{operation}", SpanKind.CLIENT, attributes, on_error=_describe_error
        ):
            return self.client.call(operation, timeout_s=timeout_s, **parameters)


def _describe_error(span: Span, error: Exception) -> None:
    if not isinstance(error, AwsError):
        fail_with_class(span, error)
    elif error.code in _LATE_WRITE_CODES:
        span.set_attribute("db.response.status_code", error.code)
    else:
        fail(span, error.code)
