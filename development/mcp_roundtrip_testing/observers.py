"""Observers that record the events and failures of a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

_RECORD_ATTRIBUTES = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}


@dataclass(slots=True)
class RecordingObserver:
    """Records each event with its fields, and each failure."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failures: list[tuple[str, BaseException]] = field(default_factory=list)
    tags: dict[str, Any] = field(default_factory=dict)

    def begin(self, correlation_id: str) -> bool:
        """Remove the tags of the previous invocation; return False, because only tests have this observer."""
        self.tags.clear()
        return False

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Redact nothing in tests."""

    def count_aws_call(self, service: str) -> None:
        """Do nothing: tests count calls at their destination."""

    def tag(self, **fields: Any) -> None:
        self.tags |= fields

    def record(self, event: str, **fields: Any) -> None:
        assert fields.keys().isdisjoint(_RECORD_ATTRIBUTES), "logging refuses these names"
        self.events.append((event, fields))

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        self.record(event, **fields)
        self.failures.append((event, error))

    def on_exception(self, error: BaseException) -> None:
        """Do nothing: the test sees the exception as the cause of its failure."""

    def extend(self, other: RecordingObserver) -> None:
        """Append the records of another observer."""
        self.events += other.events
        self.failures += other.failures


@dataclass(slots=True)
class RequestObserver:
    """Records what happens in one request, and forwards everything to `observer`.

    `changed`: the keys of questions that changed. `completed`: the fields of `request_completed`.
    """

    observer: Any
    errors: list[BaseException] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    completed: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.observer, name)

    def record(self, event: str, **fields: Any) -> None:
        if event == "question_changed":
            self.changed.append(fields["key"])
        if event == "request_completed":
            self.completed = fields
        self.observer.record(event, **fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        if event != "step_failed":  # the tool continues
            self.errors.append(error)
        self.observer.record_failure(event, error, **fields)

    def on_exception(self, error: BaseException) -> None:
        self.errors.append(error)
