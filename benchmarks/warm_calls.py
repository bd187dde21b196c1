"""Time what hooks, traces and log lines add to a warm call: `warm_calls.py CALLS PIPE`.

The times are CPU time, and what is measured takes turns, so that a change of the processor's speed affects
all of it. A hook does nothing; a call makes two spans, and they and the log lines are discarded.
"""

import marshal
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import StringIO
from unittest.mock import patch

from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Call, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip.observing.opentelemetry_tracer import Tracer

TURNS = 60
HOOKS = (0, 1, 10)
REQUEST = {"method": "tools/call", "tool": "add", "round": 1, "status": 200}

Measured = Mapping[str, Callable[[], object]]


def with_hooks() -> Measured:
    """Return a warm call by the number of hooks around it."""
    servers = {hooks: Server("bench") for hooks in HOOKS}
    for hooks, server in servers.items():
        for name in range(hooks):
            server.around(partial(nothing, name))
    return {str(hooks): calling(server) for hooks, server in servers.items()}


def nothing(name: int, call: Call) -> Iterator[None]:
    """Do nothing around a pass."""
    yield


def with_traces() -> Measured:
    """Return a warm call with traces off and on."""
    ports = {"off": wiring.ports(), "on": traced_ports()}
    return {name: calling(Server("bench", ports=lambda own=own: own)) for name, own in ports.items()}


def traced_ports() -> Ports:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(NoExport()))
    return replace(wiring.ports(), tracer=Tracer(provider, lambda: None))


class NoExport(SpanExporter):
    """Exports spans to nowhere: the time of a real export is that of its backend."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def log_lines() -> Measured:
    """Return the line of a request that has ended, without and with the metrics of a call that asked."""
    observer = LogObserver(service="bench")
    observer.begin("request-1")
    observer.tag(flow="f")
    record = partial(observer.record, "request_completed", **REQUEST)
    return {
        "a line": partial(record, outcome="complete"),
        "a line with metrics": partial(record, outcome="input_required", asked=["confirm"]),
    }


class Nowhere(StringIO):
    """Drops what is written."""

    def write(self, text: str) -> int:
        return len(text)


def calling(server: Server) -> Callable[[], None]:
    """Return a function that calls a plain tool, which it adds to the server."""
    context, event = LambdaContext(), payloads.tool_call("add", {"a": 1, "b": 2})

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call() -> None:
        assert server.lambda_handler(event, context)["statusCode"] == 200

    return call


def us_per_call(measured: Measured, calls: int) -> dict[str, float]:
    """Return the least CPU time of a call in microseconds, by name: other load only adds to it."""
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
    figures = {"hooks": us_per_call(with_hooks(), calls), "traces": us_per_call(with_traces(), calls)}
    with patch.object(sys, "stdout", Nowhere()):
        figures["lines"] = us_per_call(log_lines(), calls)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
