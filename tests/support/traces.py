"""The spans of a deployment that traces into memory, as trees and as a picture."""

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from mcp_roundtrip.observing.opentelemetry_tracer import Tracer

TITLES = """\
    accTitle: The spans of a call
    accDescr: Trace A has the passes of all rounds and of the worker, B and C the later requests."""


class MemoryTracer(Tracer):
    """A tracer whose spans stay in memory. `x_ray` is the trace header that Lambda sets."""

    def __init__(self, x_ray: str | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        super().__init__(self.provider, lambda: x_ray)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of their beginnings."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def flush(self) -> None:
        self.flushed = len(self.spans)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]


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
