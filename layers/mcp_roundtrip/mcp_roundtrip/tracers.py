"""Create the tracer of a deployment that traces."""

from __future__ import annotations

from collections.abc import Callable

from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.tracing import Tracer


def make_tracer(x_ray_header: Callable[[], str | None]) -> Tracer:
    """Return the tracer. Raises SettingsError if OpenTelemetry is not installed."""
    try:
        from mcp_roundtrip.opentelemetry_tracer import make_tracer as make
    except ImportError as error:
        remedy = "add the layer of ADOT, or install opentelemetry-sdk"
        problem = f"is on, and OpenTelemetry is not installed ({error}); {remedy}"
        raise SettingsError("MCP_TRACES", problem) from error
    return make(x_ray_header)
