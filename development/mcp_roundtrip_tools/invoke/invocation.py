"""An invocation that has ended, and its lines in the format of Lambda's log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invoked:
    """`payload` is JSON: the response, or the error if the function failed.

    `init_ms` is None if the process had run before; `duration_ms`, with the initialization, if none ran.
    """

    function: str
    request_id: str
    payload: str
    failed: bool
    init_ms: float | None
    duration_ms: float | None

    def last_lines(self) -> tuple[str, str]:
        """Return the lines with which Lambda's log of an invocation ends."""
        init_ms, duration_ms = self.init_ms or 0.0, self.duration_ms or 0.0
        init = f"Init Duration: {init_ms:.2f} ms\t" if init_ms else ""
        report = f"{init}Duration: {max(duration_ms - init_ms, 0):.2f} ms"
        return f"END RequestId: {self.request_id}", f"REPORT RequestId: {self.request_id}\t{report}"


def first_line(request_id: str) -> str:
    """Return the line with which Lambda's log of an invocation begins."""
    return f"START RequestId: {request_id} Version: $LATEST"
