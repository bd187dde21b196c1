"""A front door, an owner and its worker that trace into memory, each in environments of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.opentelemetry_tracer import OpenTelemetryTracer
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable
from support.messages import META, headers, http_event, message
from support.task_deployment import KEY, LambdaContext

CAPABILITIES: Mapping[str, Any] = {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}

TITLES = """\
    accTitle: The spans of a call
    accDescr: Trace A has the passes of all rounds and of the worker, B and C the later requests."""


@dataclass
class TracedDeployment:
    """Requests go to the front door. `x_ray` is the trace header that Lambda sets for each invocation."""

    server: Server
    folder: Path
    x_ray: str | None = None
    is_traced: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    observer: RecordingObserver = field(default_factory=RecordingObserver)

    def __post_init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.table = TaskTable(self.clock)
        self.server._ports = self.ports
        path = self.folder / "catalog.json"
        path.write_text(json.dumps(catalog_lists({"owner": self.server})))
        self.door = FrontDoor("door", path, ports=self.ports)

    def ports(self) -> Ports:
        return make_ports(
            key=KEY,
            clock=self.clock,
            observer=self.observer,
            tasks=self.table,
            forward=self._invoke,
            tracer=OpenTelemetryTracer(self.provider, lambda: self.x_ray) if self.is_traced else None,
        )

    def _invoke(self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int) -> Any:
        # The invocation is another process: it does not have the current span of this one.
        from opentelemetry import context

        token = context.attach(context.Context())
        try:
            client_context = SimpleNamespace(custom=json.loads(json.dumps(custom)))
            return self.server.lambda_handler(event, SimpleNamespace(client_context=client_context))
        finally:
            context.detach(token)

    def send(self, body: Mapping[str, Any], **changes: str | None) -> Any:
        """Send a body to the front door, and return the response."""
        event = http_event(body, headers=headers(body, **changes))
        return json.loads(self.door.lambda_handler(event, None)["body"])

    def post(self, method: str, *, meta: Mapping[str, Any] | None = None, **params: Any) -> Any:
        declared = {**META, META_CLIENT_CAPABILITIES: CAPABILITIES, **(meta or {})}
        return self.send(message(method, meta=declared, **params))

    def run_worker(self) -> None:
        """Run a worker for the first dispatch."""
        _, pk = self.table.dispatcher.sent.popleft()
        work(self.server._tool_methods, {"task": pk}, LambdaContext(), partial(self.ports))

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of their beginnings."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)


def tree(spans: list[ReadableSpan]) -> list[str]:
    """Return the names of spans, indented below their parents; a letter names the trace of each root."""
    by_id = {span.context.span_id: span for span in spans if span.context}
    letters: dict[int, str] = {}

    def depth(span: ReadableSpan) -> int:
        parent = None if span.parent is None else by_id.get(span.parent.span_id)
        return 0 if parent is None else 1 + depth(parent)

    lines = []
    for span in spans:
        assert span.context is not None
        letter = letters.setdefault(span.context.trace_id, chr(ord("A") + len(letters)))
        lines.append(f"{letter} {'  ' * depth(span)}{span.name}")
    return lines


def linked(span: ReadableSpan, spans: list[ReadableSpan]) -> list[str]:
    """Return the names of the spans that a span links to."""
    names = {each.context.span_id: each.name for each in spans if each.context}
    return [names.get(link.context.span_id, "unknown") for link in span.links]


def _place(span: ReadableSpan) -> str:
    if span.kind is SpanKind.SERVER:
        return "front door<br>" if span.parent is None else "owner<br>"
    return "worker<br>" if span.kind is SpanKind.CONSUMER else ""


def mermaid(spans: list[ReadableSpan]) -> str:
    """Return a flowchart of spans: a box for each trace, solid arrows to children, dotted ones for links."""
    ids = {span.context.span_id: f"s{number}" for number, span in enumerate(spans) if span.context}
    traces: dict[int, list[str]] = {}
    arrows = []
    for span in spans:
        assert span.context is not None
        own = ids[span.context.span_id]
        failed = "" if span.status.is_ok or span.status.is_unset else "<br>failed"
        traces.setdefault(span.context.trace_id, []).append(f'    {own}["{_place(span)}{span.name}{failed}"]')
        if span.parent is not None:
            arrows.append(f"  {ids[span.parent.span_id]} --> {own}")
        arrows += [f"  {own} -.-> {ids[link.context.span_id]}" for link in span.links]
    boxes = [
        line
        for letter, nodes in zip("ABCDEF", traces.values(), strict=False)
        for line in (f"  subgraph {letter} [trace {letter}]", *nodes, "  end")
    ]
    return "\n".join(["flowchart TD", TITLES, *boxes, *arrows])
