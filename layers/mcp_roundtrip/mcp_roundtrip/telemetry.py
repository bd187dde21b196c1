"""The observer that a deployment gets: one structured log line for each thing that happened."""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools import Logger

WARNINGS: Final = frozenset({"state_refused", "unauthorized", "catalog_drift"})
"""Events somebody may want an alarm on."""


class LogObserver:
    """Writes to the function's log through Powertools, which reads level and service from POWERTOOLS_*."""

    def __init__(self) -> None:
        self._logger = Logger(utc=True)

    def record(self, event: str, **fields: Any) -> None:
        """INFO, or WARNING for the events that deserve it."""
        log = self._logger.warning if event in WARNINGS else self._logger.info
        log(event, extra=fields)

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """ERROR with the traceback."""
        # `reason` and the like say what the message must not: they are for the log alone.
        reason = getattr(error, "reason", None)
        extra = fields if reason is None else {**fields, "reason": reason}
        self._logger.error(event, extra=extra, exc_info=error)
