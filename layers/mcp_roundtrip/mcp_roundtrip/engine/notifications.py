"""Progress and log notifications for one request, kept until its response leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip.canonical import compact, parse
from mcp_roundtrip.protocol.jsonrpc import notification
from mcp_roundtrip.protocol.methods import LOG_LEVELS


@dataclass(slots=True)
class NotificationBuffer:
    """Collects what the client asked for: nothing without a progress token, nothing below its log level.

    What cannot be sent raises UsageError whether or not this client asked for it: a tool should not fail for
    some clients alone. `news` is False for a report that an earlier pass has made. `room` is how many more
    bytes of notifications are kept, `dropped` counts those that are not.
    """

    progress_token: str | int | None = None
    log_level: str | None = None
    room: int = 6_000_000
    notifications: list[dict[str, Any]] = field(default_factory=list)
    dropped: int = 0
    _progress: float | None = None

    def progress(self, done: float, total: float | None, message: str | None, *, news: bool) -> None:
        """`notifications/progress`; a value that does not increase is dropped (patterns/progress)."""
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": _number(done)}
        if total is not None:
            params["total"] = _number(total)
        if message is not None:
            params["message"] = str(message)
        if not news or self.progress_token is None or (self._progress is not None and done <= self._progress):
            return
        self._progress = done
        self._add("notifications/progress", params)

    def log(self, level: str, data: Any, logger: str | None, *, news: bool) -> None:
        """`notifications/message`."""
        if level not in LOG_LEVELS:
            from mcp_roundtrip.engine import usage_errors

            raise usage_errors.level(level, LOG_LEVELS)
        params: dict[str, Any] = {"level": level, "data": _json(data)}
        if logger is not None:
            params["logger"] = str(logger)
        wanted = self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
        if news and wanted:
            self._add("notifications/message", params)

    def _add(self, method: str, params: dict[str, Any]) -> None:
        added = notification(method, params)
        size = len(compact(added))
        if size > self.room:
            self.dropped += 1
            return
        self.room -= size
        self.notifications.append(added)

    def log_fields(self) -> dict[str, int]:
        """What the log says of notifications for which there was no room."""
        return {"notifications_dropped": self.dropped} if self.dropped else {}


def _number(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        from mcp_roundtrip.engine import usage_errors

        raise usage_errors.progress_number(value)
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float, which is how clients read it
        return False


def _json(data: Any) -> Any:
    """A copy of `data` as it will be sent: the tool may go on changing its own."""
    try:
        return parse(compact(data))
    except (TypeError, ValueError, RecursionError):
        from mcp_roundtrip.engine import usage_errors

        raise usage_errors.log_data(data) from None
