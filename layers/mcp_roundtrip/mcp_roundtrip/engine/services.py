"""The services that the server provides to a run: time, randomness, link signing, and a task's store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import Entry

StepSpan = Callable[[str, int | None], AbstractContextManager[Any]]


class RunServices(Struct, frozen=True):
    """The functions that a run calls outside of the engine.

    - `clock` returns epoch seconds, `random_bytes(n)` n random bytes.
    - `sign_link(key, flow_id, expires_at)` returns a token for a URL; `expires_at` is in epoch seconds.
    - `pause_ms` and `pause_ms_async` wait for that many milliseconds.
    - `on_step_failed` takes a step's key, its error, and whether the step runs again. It is called for the
      errors that the tool's code does not see.
    - `step_span` takes a step's key and the number of the attempt, if the step has a Retry, and returns the
      span of its function. It is None if nothing is traced.
    - `call_identity` returns a text that is the same in every call with the same caller, tool and arguments,
      or None for callers that cannot be distinguished. It raises SettingsError.
    """

    deadline: Deadline
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    sign_link: Callable[[str, str, int], str]
    pause_ms: Callable[[float], None]
    on_step_failed: Callable[[str, Exception, bool], None]
    pause_ms_async: Callable[[float], Awaitable[None]]
    call_identity: Callable[[], str | None]
    step_span: StepSpan | None = None

    def random_fraction(self) -> float:
        """Return a float in [0, 1) with 53 random bits, like random.random()."""
        return (int.from_bytes(self.random_bytes(7), "big") >> 3) / (1 << 53)

    def without_reserve(self) -> RunServices:
        """Return the services for a pass that cannot be continued: its deadline has no reserve."""
        return replace(self, deadline=self.deadline.without_reserve())


class Recorder(Protocol):
    """Stores the entries of a task as they are made: `tasks.recorder.TaskRecorder`.

    Both methods raise StoreError.
    """

    def record(self, entry: Entry, *, as_owner: bool = False) -> Entry:
        """Store an entry and return the one that counts: the first one stored under this key.

        With `as_owner`, it is stored only if this worker owns the task at that moment. Raises LeaseLost, and
        ItemTooLarge.
        """
        ...

    def holds_lease(self) -> bool:
        """Return whether this worker still owns the task: it was neither cancelled nor taken over."""
        ...


class TaskOptions(Struct, frozen=True):
    """The task that a run belongs to, or whether the run may become one.

    `recorder` is set in a task and in a parked call. `may_start` says whether this call may become a task:
    the tool allows it and the client declared the extension. `is_offered` says whether the tool was
    registered with `task=`. `is_parked`: the recorder stores a parked call, whose passes are rounds and may
    become a task.
    `created_in` is the span context in which the task was created, if that was traced. `outstanding_keys` are
    the keys of the questions that the task was asking when the pass began.
    """

    recorder: Recorder | None = None
    may_start: bool = False
    is_offered: bool = False
    is_parked: bool = False
    created_in: str | None = None
    outstanding_keys: frozenset[str] = frozenset()
