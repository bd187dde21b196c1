"""Progress and log notifications for one request, kept until its response leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip.protocol.jsonrpc import notification
from mcp_roundtrip.protocol.methods import LOG_LEVELS


@dataclass(slots=True)
class Reports:
    """Collects what the client asked for: nothing without a progress token, nothing below its log level."""

    progress_token: str | int | None = None
    log_level: str | None = None
    notifications: list[dict[str, Any]] = field(default_factory=list)
    _progress: float | None = None

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """`notifications/progress`; a value that does not increase is dropped (patterns/progress)."""
        if self.progress_token is None or (self._progress is not None and done <= self._progress):
            return
        self._progress = done
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notifications.append(notification("notifications/progress", params))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """`notifications/message`; raises ValueError for a level RFC 5424 does not know."""
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level: use one of {', '.join(LOG_LEVELS)}")
        if self.log_level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self.log_level):
            return
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self.notifications.append(notification("notifications/message", params))
