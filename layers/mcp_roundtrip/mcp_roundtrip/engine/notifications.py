"""Progress and log notifications of one request, sent with its response."""

from __future__ import annotations

import sys
from typing import Any

from msgspec import Struct, field

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.protocol.constants import LOG_LEVELS
from mcp_roundtrip.protocol.jsonrpc import notification
from mcp_roundtrip.protocol.strict_json import compact_json, parse_json


class NotificationBuffer(Struct):
    """Collects the notifications that the client asked for, by a progress token or a log level.

    A value that cannot be sent raises UsageError for every client, so that a tool does not fail for some
    only. `is_new` is False for a notification that an earlier pass has sent. `dropped` counts those beyond
    `bytes_left`.
    """

    progress_token: str | int | None = None
    log_level: str | None = None
    bytes_left: int = 6_000_000
    messages: list[dict[str, Any]] = field(default_factory=list)
    dropped: int = 0
    _progress: float | None = None

    def progress(self, done: float, total: float | None, message: str | None, *, is_new: bool) -> None:
        """Add `notifications/progress`, unless its value does not increase (MCP, patterns/progress)."""
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": _number(done)}
        if total is not None:
            params["total"] = _number(total)
        if message is not None:
            params["message"] = str(message)
        if not is_new or self.progress_token is None:
            return
        if self._progress is not None and done <= self._progress:
            return
        self._progress = done
        self._add("notifications/progress", params)

    def log(self, level: str, data: Any, logger: str | None, *, is_new: bool) -> None:
        if level not in LOG_LEVELS:
            raise UsageError(f"log: {level!r:.100} is not a log level; use one of {', '.join(LOG_LEVELS)}")
        params: dict[str, Any] = {"level": level, "data": _json(data)}
        if logger is not None:
            params["logger"] = str(logger)
        wanted = self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
        if is_new and wanted:
            self._add("notifications/message", params)

    def _add(self, method: str, params: dict[str, Any]) -> None:
        added = notification(method, params)
        size = len(compact_json(added))
        if size > self.bytes_left:
            self.dropped += 1
            return
        self.bytes_left -= size
        self.messages.append(added)

    def log_fields(self) -> dict[str, int]:
        return {"notifications_dropped": self.dropped} if self.dropped else {}


def _number(value: float) -> float:
    # An integer may be larger than any float, and clients read numbers as floats.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not -sys.float_info.max <= value <= sys.float_info.max:
        raise UsageError(f"progress: {value!r:.100} is not a finite number; pass an int or a float")
    return value


def _json(data: Any) -> Any:
    """Return a copy of `data` as JSON data: the tool may change its own later."""
    try:
        return parse_json(compact_json(data))
    except (TypeError, ValueError, RecursionError):
        kind = type(data).__name__
        raise UsageError(f"log: JSON cannot hold this {kind}; pass text, numbers, lists or dicts") from None
