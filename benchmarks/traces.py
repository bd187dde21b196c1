"""Time a warm call without and with traces: `traces.py CALLS PIPE`.

With traces, a call makes two spans, which are discarded before the response leaves; the time of a
real export is that of its backend.
"""

import sys

from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from interleaved import calling, us_per_call, write_figures
from mcp_roundtrip import Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.observing.tracer import Tracer


class Discard(SpanExporter):
    """Exports spans to nowhere."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def traced_ports() -> Ports:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Discard()))
    return replace(wiring.ports(), tracer=Tracer(provider, lambda: None))


def main(calls: int, pipe: int) -> None:
    ports = {"off": wiring.ports(), "on": traced_ports()}
    measured = {name: calling(Server("bench", ports=lambda own=own: own)) for name, own in ports.items()}
    write_figures(us_per_call(measured, calls), pipe)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
