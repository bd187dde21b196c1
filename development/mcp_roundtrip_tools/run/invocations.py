"""One invocation of a function by a person, with its log."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import walk


@dataclass(frozen=True, slots=True)
class Invoked:
    """`payload` is JSON: the response, or the error if the function failed.

    `init_ms` is None if the process had run before; `duration_ms`, with the initialization, if none ran.
    `log_lines` are also those of functions for which it waited.
    """

    function: str
    request_id: str
    payload: str
    failed: bool
    init_ms: float | None
    duration_ms: float | None
    log_lines: list[str]


def invoke(app: LocalApp, function: str, event: str, request_id: str) -> Invoked:
    """Run a function once."""
    result = app.run(function, event.encode(), request_id=request_id)
    recorded = app.recorder.invocation(request_id)
    lines = [] if recorded is None else [line for each in walk(recorded) for line in each.log_lines]
    return Invoked(
        function,
        request_id,
        result.payload.decode(),
        result.failed,
        None if recorded is None else recorded.init_ms,
        None if recorded is None else recorded.duration_ms,
        [line.text for line in sorted(lines, key=lambda line: line.at_ms)],
    )
