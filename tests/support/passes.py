"""Passes over a tool body without server or token. The journal is serialized as JSON, as in a state."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.async_pass import run_branches
from mcp_roundtrip.engine.context import Context
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import Entry, History, Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcomes import Checkpointed, Done, Failed, NeedsInput, Outcome, run_function
from mcp_roundtrip.engine.pass_state import Recorder, Run, RunServices, TaskOptions
from mcp_roundtrip.engine.question_channels import Channels, ClientInputs
from mcp_roundtrip.internal_errors import LeaseLost
from mcp_roundtrip.server.options import Fallback
from mcp_roundtrip_testing.task_table import FakeClock

EVERYTHING: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@dataclass
class TaskJournal:
    """The journal of a task, shared by its passes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    is_cancelled: bool = False

    def record(self, entry: Entry, *, as_owner: bool = False) -> Entry:
        if as_owner and self.is_cancelled:
            raise LeaseLost
        return self.entries.setdefault(entry.key, entry)

    def holds_lease(self) -> bool:
        return not self.is_cancelled


@dataclass(slots=True)
class Passes:
    """A body that runs pass by pass. The next pass starts from `journal`, which is None before the first."""

    body: Callable[[Any], Any]
    capabilities: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)
    clock: FakeClock = field(default_factory=FakeClock)
    remaining_ms: float = 30_000
    journal: Journal | None = None
    info: CallInfo = field(default_factory=CallInfo)
    run: Run | None = None
    failed_steps: list[tuple[str, Exception, bool]] = field(default_factory=list)
    recorder: Recorder | None = None
    identity: str | None = "ada calls it"
    may_start_task: bool = False
    fallbacks: tuple[Fallback, ...] = ("default",)
    _random: Any = field(default_factory=lambda: itertools.count(1))

    def make_run(self, inputs: Mapping[str, Any] | None = None) -> Run:
        journal = self.journal
        responses = dict(inputs or {})
        if journal is not None:
            journal = Journal.from_json(json.loads(json.dumps(journal.to_json())))
            responses = {**responses, **journal.unused_responses}
        services = RunServices(
            Deadline(self.clock.monotonic_ms() + self.remaining_ms, self.clock.monotonic_ms),
            self.clock,
            lambda size: next(self._random).to_bytes(size, "big"),
            lambda key, flow_id, expires_at: f"{key}.{flow_id}.{expires_at}",
            lambda duration_ms: self.clock.advance(duration_ms / 1000),
            lambda step, error, runs_again: self.failed_steps.append((step, error, runs_again)),
            self.clock.pause_ms_async,
            lambda: self.identity,
        )
        self.run = Run(
            History(journal or Journal("run-1")),
            ClientInputs(responses, journal is not None, lambda: Channels(self.capabilities, self.fallbacks)),
            services,
            NotificationBuffer("token", "debug"),
            TaskOptions(self.recorder, self.may_start_task, is_offered=self.recorder is not None),
        )
        return self.run

    def __call__(self, **inputs: Any) -> Outcome:
        """Run one pass with `inputResponses`."""
        outcome = self._end_of(self.make_run(inputs))
        if isinstance(outcome, NeedsInput | Checkpointed):
            self.journal = outcome.journal
        return outcome

    def _end_of(self, run: Run) -> Outcome:
        return run_function(self.body, {"ctx": Context(run, self.info)}, run)

    def begun(self) -> Self:
        """Run the first pass without inputs."""
        self()
        return self

    def next_in_task(self, **inputs: Any) -> Outcome:
        """Run the next pass of a task, whose `recorder` has the journal."""
        assert isinstance(self.recorder, TaskJournal)
        outstanding = self.journal.outstanding if self.journal else {}
        self.journal = Journal("run-1", tuple(self.recorder.entries.values()), outstanding)
        return self(**inputs)

    def on(self, body: Callable[[Any], Any]) -> Passes:
        """Return the same call on another build of the tool."""
        return replace(self, body=body)


def accept(value: Any = None, **content: Any) -> dict[str, Any]:
    """Return an accepted form: fields by name, or the only field of a single-field form."""
    return {"action": "accept", "content": content or {"value": value}}


def asked(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome, NeedsInput), outcome
    return dict(outcome.requests)


def error(
    outcome: Outcome, kind: type[BaseException] | tuple[type[BaseException], ...] = BaseException
) -> Any:
    """Return the exception of this kind that a pass failed with."""
    assert isinstance(outcome, Failed), outcome
    assert isinstance(outcome.error, kind), outcome.error
    return outcome.error


def value(outcome: Outcome) -> Any:
    assert isinstance(outcome, Done), outcome
    return outcome.value


class AsyncPasses(Passes):
    """`Passes` of an asynchronous body, each in a new event loop."""

    def _end_of(self, run: Run) -> Outcome:
        return asyncio.run(
            run_branches(lambda branches: self.body(AsyncContext(run, self.info, branches)), run)
        )
