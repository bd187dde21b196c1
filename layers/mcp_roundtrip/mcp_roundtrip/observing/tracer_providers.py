"""Get OpenTelemetry's tracer provider, and set one up in a function that has none."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.trace import TracerProvider


def tracer_provider(environment: Mapping[str, str]) -> TracerProvider:
    """Return the provider that a layer or the function's module has set. Without one, set one up for OTLP.

    OpenTelemetry's environment variables configure the latter
    (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). Its service is the
    function, unless they name another one. Raises ImportError if the SDK or the exporter is not installed.
    """
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):
        return provider
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    function = Resource({"service.name": environment.get("AWS_LAMBDA_FUNCTION_NAME", "mcp-roundtrip")})
    created = SdkTracerProvider(
        resource=Resource.create(function.merge(OTELResourceDetector().detect()).attributes)
    )
    created.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(created)
    return created
