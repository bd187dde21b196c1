"""An audit log in memory, and the records in its lines."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip.deployment.ports import AuditLog
from mcp_roundtrip.internal_errors import AuditFailed


@dataclass
class AuditLines:
    """The lines of an audit log. `fails` decides for each phase whether its line is refused."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    fails: Callable[[str], bool] = lambda phase: False
    on_write: Callable[[str], object] = lambda phase: None

    @property
    def log(self) -> AuditLog:
        source = {"stack": "shop", "function": "orders"}
        return AuditLog(self._write, source, trace_header=lambda: "Root=1-5f-2a;Parent=3;Sampled=1")

    def _write(self, time_ms: int, line: str) -> None:
        parsed = json.loads(line)
        self.on_write(parsed["phase"])
        if self.fails(parsed["phase"]):
            raise AuditFailed("ServiceUnavailableException")
        self.lines.append(parsed)

    @property
    def phases(self) -> list[str]:
        return [line["phase"] for line in self.lines]

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each id, as a reader sees it: its last line, or an unknown outcome."""
        return collapse(self.lines)


def collapse(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the lines of each record."""
    records: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line["phase"] == "ended" or line["record"] not in records:
            records[line["record"]] = {"outcome": "unknown", **line}
    return list(records.values())
