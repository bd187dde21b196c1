"""Create the tracer of a deployment that traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.observing.tracing import Tracer


def make_tracer(x_ray_header: Callable[[], str | None], environment: Mapping[str, str]) -> Tracer:
    """Return the tracer. Raises SettingsError if OpenTelemetry is not installed."""
    try:
        from mcp_roundtrip.observing.opentelemetry_tracer import OpenTelemetryTracer
        from mcp_roundtrip.observing.tracer_providers import tracer_provider

        return OpenTelemetryTracer(tracer_provider(environment), x_ray_header)
    except ImportError as error:
        remedy = (
            "add the layer of ADOT, or install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
        )
        problem = f"is on, and OpenTelemetry is not installed ({error}); {remedy}"
        raise SettingsError("MCP_TRACES", problem) from error
