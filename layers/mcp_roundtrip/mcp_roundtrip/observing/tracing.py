"""The interface of tracing. `opentelemetry_tracer` implements it; without a tracer no span is made.

A span context is text in the form of a `traceparent` header (W3C Trace Context 1), so that a state, a task
and the client context of a forwarded call can carry it. Spans contain names, counts and outcomes, as log
lines do: no arguments, answers, results, tokens or texts of errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, Protocol

SpanKind = Literal["server", "internal", "client", "producer", "consumer"]

Attribute = str | int | float | bool

FLUSH_MS: Final = 1_000
"""Longest time in milliseconds that a response waits for the export of its spans."""

_TRACEPARENT: Final = r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]"


class Span(Protocol):
    """An operation that has begun. Its methods raise nothing."""

    @property
    def traceparent(self) -> str | None:
        """Its context; None if nothing is traced, because no exporter is set up."""
        ...

    def rename(self, name: str) -> None: ...

    def set_attribute(self, name: str, value: Attribute) -> None: ...

    def fail(self, error_type: str) -> None:
        """Set the status to ERROR and `error.type`, which has few values. There is no description."""
        ...


class Tracer(Protocol):
    """Makes spans. Several threads and coroutines may use it; its methods raise nothing."""

    def span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, Attribute],
        *,
        parent: str | None = None,
        tracestate: str | None = None,
        links: Sequence[str | None] = (),
    ) -> AbstractContextManager[Span]:
        """Return a span that is the current one until the context is left.

        Without a `parent` it is a child of the current span. An exception that leaves the context fails the
        span with the name of its class, if it has not failed yet. Links that are None are left out.
        """
        ...

    def current(self) -> str | None:
        """Return the context of the current span; None if there is none."""
        ...

    def annotate(
        self, attributes: Mapping[str, Attribute], *, name: str | None = None, link: str | None = None
    ) -> None:
        """Add attributes and a link to the current span, and rename it."""
        ...

    def flush(self) -> None:
        """Export the spans that have ended, within FLUSH_MS.

        Lambda freezes the process when the response has left.
        """
        ...


def is_traceparent(value: Any) -> bool:
    """Return whether a value is a span context in the form that this package writes."""
    return isinstance(value, str) and re.fullmatch(_TRACEPARENT, value) is not None
