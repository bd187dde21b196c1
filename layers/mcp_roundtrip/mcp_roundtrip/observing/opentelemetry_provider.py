"""The provider of spans that are exported by OTLP over HTTP."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def make_provider(service: str) -> TracerProvider:
    """OpenTelemetry's environment variables configure the provider, and may name another service."""
    attributes = Resource({"service.name": service}).merge(OTELResourceDetector().detect()).attributes
    provider = TracerProvider(resource=Resource.create(attributes))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
