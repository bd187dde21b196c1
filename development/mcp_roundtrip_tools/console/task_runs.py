"""The invocations of workers for one task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """One invocation of a worker. `ended_at_ms` is None while it runs."""

    id: str
    environment_id: str
    is_new_environment: bool
    trigger: str
    started_at_ms: float
    ended_at_ms: float | None
    error: str | None

    @classmethod
    def of(cls, invocation: RecordedInvocation) -> WorkerRun:
        duration_ms = invocation.duration_ms
        return cls(
            invocation.id,
            invocation.environment_id,
            invocation.is_new_environment,
            invocation.trigger,
            invocation.started_at_ms,
            None if duration_ms is None else invocation.started_at_ms + duration_ms,
            invocation.error,
        )

    @property
    def is_running(self) -> bool:
        return self.ended_at_ms is None

    def to_json(self) -> dict[str, Any]:
        """Return the members of a run in the API."""
        return {
            "invocation": self.id,
            "environmentId": self.environment_id,
            "isNewEnvironment": self.is_new_environment,
            "trigger": self.trigger,
            "startedAtMs": self.started_at_ms,
            "endedAtMs": self.ended_at_ms,
            "error": self.error,
        }


def runs_of(app: LocalApp, pk: str) -> list[WorkerRun]:
    """Return the runs for the task with this partition key, in the order of their start."""
    found = [each for each in app.recorder.background_invocations() if pk in task_keys(each.payload)]
    return [WorkerRun.of(each) for each in sorted(found, key=lambda each: each.started_at_ms)]


def task_keys(payload: bytes) -> list[str]:
    """Return the partition keys of the tasks that the event of a worker names."""
    if b'"task' not in payload and b'\\"task' not in payload:
        return []
    try:
        return list(_keys(json.loads(payload)))
    except (ValueError, TypeError, AttributeError):
        return []


def _keys(event: dict[str, Any]) -> Iterator[str]:
    if "task" in event:
        yield str(event["task"])
    for record in event.get("Records", ()):
        yield from _keys(json.loads(record["body"]))
