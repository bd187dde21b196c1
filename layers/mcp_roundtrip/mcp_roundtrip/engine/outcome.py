"""How a pass over a tool's body can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.run import Run


@dataclass(frozen=True, slots=True)
class Done:
    """The tool returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The client has to answer `requests` (InputRequests, by key)."""

    requests: Mapping[str, Mapping[str, Any]]
    journal: Journal


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Time is up, nothing is asked: the client retries with the state alone."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class TaskRequested:
    """The call goes on as a task with this time to live."""

    journal: Journal
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Sleeping:
    """A task has nothing to do until `wake_at_ms` (epoch milliseconds)."""

    wake_at_ms: int


@dataclass(frozen=True, slots=True)
class OwnershipLost:
    """A task that is not this worker's any more: cancelled, or taken over."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool, or the engine on its behalf, raised `error`."""

    error: BaseException


Outcome = Done | NeedsInput | Checkpointed | TaskRequested | Sleeping | OwnershipLost | Failed


def suspended(run: Run) -> NeedsInput | Checkpointed | TaskRequested | Sleeping | OwnershipLost:
    """The outcome of a run that was suspended."""
    if run.is_stopped:
        return OwnershipLost()
    journal = run.journal_now()
    if run.task_ttl_ms is not None:
        return TaskRequested(journal, run.task_ttl_ms)
    if run.is_short and run.tasks.recorder is not None:
        return Checkpointed(journal)  # one branch has work to do: the next worker asks what the others ask
    if run.pending:
        requests = {key: pending.to_wire() for key, pending in run.pending.items()}
        return NeedsInput(requests, journal)
    if run.wake_at_ms is not None:
        return Sleeping(run.wake_at_ms)
    return Checkpointed(journal)
