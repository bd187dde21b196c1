"""Which event source an event comes from."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from mcp_roundtrip.adapters import direct, http_api
from mcp_roundtrip.errors import McpRoundtripError

ADAPTERS: Final[tuple[ModuleType, ...]] = (http_api, direct)


class UnknownEventSource(McpRoundtripError):
    """The event is of no source this package knows."""

    def __init__(self) -> None:
        super().__init__(
            "the event is neither an API Gateway HTTP API (payload 2.0) or function URL request, "
            "nor a bare JSON-RPC message"
        )


def detect(event: Any) -> ModuleType:
    """The adapter module (`request`, `response`) for an event. Raises UnknownEventSource."""
    if isinstance(event, Mapping):
        for adapter in ADAPTERS:
            if adapter.matches(event):
                return adapter
    raise UnknownEventSource
