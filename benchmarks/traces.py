"""Time a warm call without and with traces: `traces.py CALLS PIPE`.

With traces, a call makes two spans, which are exported into memory before the response leaves; the time of a
real exporter is that of its backend. The servers take turns, so that a change of the processor's speed
affects all of them.
"""

import marshal
import os
import sys
import time
from collections.abc import Callable

from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Server, wiring
from mcp_roundtrip.opentelemetry_tracer import OpenTelemetryTracer
from mcp_roundtrip.ports import Ports

TURNS = 60


class Discard(SpanExporter):
    """Exports spans to nowhere."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def traced_ports() -> Ports:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Discard()))
    return replace(wiring.ports(), tracer=OpenTelemetryTracer(provider, lambda: None))


def calling(ports: Ports) -> Callable[[], None]:
    """Return a function that calls a plain tool of a server with these ports."""
    server = Server("bench", ports=lambda: ports)
    context, event = LambdaContext(), payloads.tool_call("add", {"a": 1, "b": 2})

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call() -> None:
        assert server.lambda_handler(event, context)["statusCode"] == 200

    return call


def us_per_call(calls: int) -> dict[str, float]:
    """Return the least CPU time of a call in microseconds: other load only adds to it."""
    measured = {"off": calling(wiring.ports()), "on": calling(traced_ports())}
    samples: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(TURNS):
        for name, call in measured.items():
            call()
            began = time.process_time()
            for _ in range(calls):
                call()
            samples[name].append((time.process_time() - began) * 1e6 / calls)
    return {name: min(own) for name, own in samples.items()}


def main(calls: int, pipe: int) -> None:
    figures = us_per_call(calls)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"us": figures}, out)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
