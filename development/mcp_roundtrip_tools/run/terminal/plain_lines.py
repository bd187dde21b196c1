"""Events as lines of plain text, for programs that read what `serve` logs."""

from __future__ import annotations

from collections.abc import Callable

from mcp_roundtrip_tools.client.terminal_text import one_line
from mcp_roundtrip_tools.run.observation.messages import header
from mcp_roundtrip_tools.run.observation.records import Ended, Event, HttpExchange, Note, Printed


class PlainLines:
    """Writes a line for each printed line, each request and each note of the runner."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        match event:
            case Printed():
                for line in event.line.text.split("\n"):
                    self._log(f"[{event.function}] {line}")
            case Note():
                self._log(event.text)
            case Ended(HttpExchange() as exchange):
                self._log(one_line(_request_line(exchange)))


def _request_line(exchange: HttpExchange) -> str:
    rpc_method = header(exchange.request_headers, "mcp-method") or "-"
    return (
        f"{exchange.method} {exchange.path} {rpc_method} {exchange.status} {exchange.duration_ms or 0:.1f} ms"
    )
