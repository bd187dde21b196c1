"""The trees of the recorder: requests and invocations while they change."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from mcp_roundtrip_tools.run.observation.records import HttpExchange, LogLine, RecordedInvocation, ServiceCall

MAX_LINES = 1_000
"""The log lines that an invocation keeps, the newest."""


@dataclass(slots=True)
class InvocationNode:
    """An invocation of a tree. `record` is without the parts that are listed here."""

    record: RecordedInvocation
    tree: Tree
    service_calls: list[ServiceCall] = field(default_factory=list)
    log_lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    invocations: list[InvocationNode] = field(default_factory=list)

    def add_line(self, line: LogLine) -> int:
        """Add a line, and return by how many bytes the size grows: the oldest line may be dropped."""
        is_full = len(self.log_lines) == MAX_LINES
        dropped = len(self.log_lines[0].text) if is_full else 0
        self.log_lines.append(line)
        return len(line.text) - dropped

    def freeze(self) -> RecordedInvocation:
        return replace(
            self.record,
            service_calls=tuple(self.service_calls),
            log_lines=tuple(self.log_lines),
            invocations=tuple(node.freeze() for node in self.invocations),
        )


@dataclass(slots=True)
class Tree:
    """A root with its invocations.

    `exchange` is None if the root is an invocation, which is then the only one of `invocations`. `size` is
    that of bodies, headers, lines and calls in bytes. `changed` is the sequence number of the last change.
    """

    id: str
    exchange: HttpExchange | None
    size: int = 0
    changed: int = 0
    invocations: list[InvocationNode] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """The ids of all invocations of the tree."""

    @property
    def has_ended(self) -> bool:
        root = self.exchange or self.invocations[0].record
        return root.duration_ms is not None

    def freeze(self) -> HttpExchange | RecordedInvocation:
        if self.exchange is None:
            return self.invocations[0].freeze()
        return replace(self.exchange, invocations=tuple(node.freeze() for node in self.invocations))
