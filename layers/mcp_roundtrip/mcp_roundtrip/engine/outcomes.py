"""How a pass over a function ends: its outcomes. `run_function` runs a synchronous one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.engine.question_channels import Channel
from mcp_roundtrip.errors import MissingClientCapability, ToolError
from mcp_roundtrip.protocol.capabilities import capability_paths, missing_capabilities

OutcomeName = Literal["complete", "input_required", "checkpoint", "task", "sleep", "lease_lost"]
"""An outcome that is no failure, for hooks and spans."""


class Done(Struct, frozen=True):
    name: ClassVar[OutcomeName] = "complete"
    value: Any


class Failed(Struct, frozen=True):
    """The function, or the engine on its behalf, raised `error`."""

    error: BaseException


class NeedsInput(Struct, frozen=True):
    """Somebody has to answer `requests` (InputRequest objects by key), which `channel` carries."""

    name: ClassVar[OutcomeName] = "input_required"
    requests: Mapping[str, Mapping[str, Any]]
    journal: Journal
    channel: Channel = "client"


class Checkpointed(Struct, frozen=True):
    """The time is nearly over and nothing is outstanding: the next pass continues at once."""

    name: ClassVar[OutcomeName] = "checkpoint"
    journal: Journal


class TaskRequested(Struct, frozen=True):
    """The call continues as a task that lives for `ttl_ms` milliseconds."""

    name: ClassVar[OutcomeName] = "task"
    journal: Journal
    ttl_ms: int


class Sleeping(Struct, frozen=True):
    """The task has nothing to do until `wake_at_ms` (epoch milliseconds)."""

    name: ClassVar[OutcomeName] = "sleep"
    wake_at_ms: int


class OwnershipLost(Struct, frozen=True):
    """The task was cancelled, or another worker took it over."""

    name: ClassVar[OutcomeName] = "lease_lost"


Suspended = NeedsInput | Checkpointed | TaskRequested | Sleeping | OwnershipLost
Outcome = Done | Failed | Suspended


def run_function(function: Callable[..., Any], arguments: Mapping[str, Any], run: Run) -> Outcome:
    """Call `function` and return how the pass ended: a fault or a suspension counts even if it was caught."""
    outcome: Outcome
    try:
        outcome = Done(function(**arguments))
    except BaseException as error:  # Suspend, but also SystemExit, which would end the Lambda environment
        outcome = Failed(error)
    run.has_ended = True
    if run.fault is not None:
        return Failed(run.fault)
    return suspended_outcome(run) if run.suspension.has_begun else outcome


def suspended_outcome(run: Run) -> Suspended:
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


def single_exception(error: BaseException) -> BaseException:
    """Return the exception that decides the reply; the group itself if its exceptions have different ones."""
    causes = list(_leaves(error))
    if len(causes) == 1:
        return causes[0]
    lacking = [cause for cause in causes if isinstance(cause, MissingClientCapability)]
    if len(lacking) == len(causes):
        questions = {key: asked for cause in lacking for key, asked in cause.questions.items()}
        paths = {path for cause in lacking for path in capability_paths(cause.required)}
        required = missing_capabilities({}, sorted(paths))
        lost = dict.fromkeys(key for cause in lacking for key in cause.lost)
        return MissingClientCapability(required, questions, lost=lost)
    if all(isinstance(cause, ToolError) for cause in causes):
        return ToolError("\n".join(dict.fromkeys(map(str, causes))))
    return error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for cause in error.exceptions:
            yield from _leaves(cause)
    else:
        yield error
