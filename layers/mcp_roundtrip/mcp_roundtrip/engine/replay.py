"""Runs one pass over a synchronous function, and derives the outcome of a suspended run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip.engine.outcome import (
    Checkpointed,
    Done,
    Failed,
    NeedsInput,
    Outcome,
    OwnershipLost,
    Sleeping,
    Suspended,
    TaskRequested,
)
from mcp_roundtrip.engine.run import Run


def replay(function: Callable[..., Any], arguments: Mapping[str, Any], run: Run) -> Outcome:
    """Call `function` and return how the pass ended.

    A fault of the run, and its suspension, decide the outcome even if the function caught the exception.
    """
    outcome: Outcome
    try:
        outcome = Done(function(**arguments))
    except BaseException as error:  # Suspend, but also SystemExit, which would end the Lambda environment
        outcome = Failed(error)
    if run.fault is not None:
        return Failed(run.fault)
    return suspended_outcome(run) if run.suspension.has_begun else outcome


def suspended_outcome(run: Run) -> Suspended:
    """Return the outcome of a suspended run."""
    suspension, requests = run.suspension, run.requests
    if suspension.lost_ownership:
        return OwnershipLost()
    journal = run.to_journal()
    if suspension.task_ttl_ms is not None:
        return TaskRequested(journal, suspension.task_ttl_ms)
    if suspension.is_out_of_time and run.is_task:
        return Checkpointed(journal)  # one branch has work left: the next worker sends the others' requests
    if requests:
        wire_requests = {key: request.to_wire() for key, request in requests.items()}
        return NeedsInput(wire_requests, journal, requests.channel)
    if suspension.wake_at_ms is not None:
        return Sleeping(suspension.wake_at_ms)
    return Checkpointed(journal)
