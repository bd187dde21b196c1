"""One pass over a tool's function: what it is given, and the rules about keys, faults and checkpoints.

`asking` has the rules about questions and their answers, `steps` those about steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.engine.deadline import Deadline
from mcp_roundtrip.engine.journal import Entry, History, Journal, Kind, keys_of_steps
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.question_channels import ClientInputs, InputRequests
from mcp_roundtrip.errors import Drift, DuplicateKey, InvalidKey, Suspend, UsageError
from mcp_roundtrip.internal_errors import ItemTooLarge, LeaseLost, StoreError
from mcp_roundtrip.protocol.strict_json import has_half_of_a_pair

StepSpan = Callable[[str, int | None], AbstractContextManager[Any]]


class RunServices(Struct, frozen=True):
    """The functions that a run calls outside of the engine (`server.pass_and_reply` creates them).

    - `clock` returns epoch seconds, `random_bytes(n)` n random bytes.
    - `sign_link(key, flow_id, expires_at)` returns a token for a URL; `expires_at` is in epoch seconds.
    - `pause_ms` and `pause_ms_async` wait for that many milliseconds; None is `asyncio.sleep`.
    - `on_step_failed` takes a step's key, an error that the tool's code does not see, and whether the step
      runs again.
    - `step_span` takes a step's key and the number of the attempt, if the step has a Retry. None: no traces.
    - `call_identity`: see `state.claims.Binding.identity`. It raises SettingsError.
    """

    deadline: Deadline
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    sign_link: Callable[[str, str, int], str]
    pause_ms: Callable[[float], None]
    on_step_failed: Callable[[str, Exception, bool], None]
    pause_ms_async: Callable[[float], Awaitable[None]] | None
    call_identity: Callable[[], str | None]
    step_span: StepSpan | None = None

    def random_fraction(self) -> float:
        """Return a float in [0, 1) with 53 random bits, like random.random()."""
        return (int.from_bytes(self.random_bytes(7), "big") >> 3) / (1 << 53)


class Recorder(Protocol):
    """Stores the entries of a task as they are made: `tasks.lease.TaskRecorder`. Raises StoreError."""

    def record(self, entry: Entry, *, as_owner: bool = False) -> Entry:
        """Store an entry and return the one that counts: the first one stored under this key.

        With `as_owner`, it is stored only if this worker owns the task then. Raises LeaseLost, ItemTooLarge.
        """

    def holds_lease(self) -> bool:
        """Return whether this worker still owns the task: it was neither cancelled nor taken over."""


class TaskOptions(Struct, frozen=True):
    """The task that a run belongs to, or whether the run may become one.

    `recorder`: set in a task and in a parked call (`is_parked`), whose passes are rounds.
    `may_start`: the tool allows a task, and the client declared the extension.
    `is_offered`: the tool was registered with `task=`.
    `created_in`: the span context in which the task was created, if that was traced.
    `outstanding_keys`: of the questions that the task was asking when the pass began.
    """

    recorder: Recorder | None = None
    may_start: bool = False
    is_offered: bool = False
    is_parked: bool = False
    created_in: str | None = None
    outstanding_keys: frozenset[str] = frozenset()


E = TypeVar("E", bound=Exception)

RESERVED_CHARACTERS: Final = frozenset("~/")
"""Not allowed in an author's key: "/" ends a branch's prefix, "~" begins an internal entry's suffix."""

MAX_KEY_BYTES: Final = 900
"""The limit of a key with its branch prefixes: a DynamoDB sort key has at most 1,024 bytes."""

MAX_INLINE_PAUSE_MS: Final = 2_000
"""The longest pause during which a task's worker waits. For a longer one the task sleeps."""

TASK_TTL_MS: Final = 3_600_000
"""The lifetime of a task that a call becomes by itself: to wait for a URL, or out of time or of rounds."""

running_function: ContextVar[tuple[str, str] | None] = ContextVar("mcp_roundtrip_running", default=None)
"""Kind and key of the step, or of the question with `done`, whose function is running. That function may not
use the context: a replay could not reproduce what it did."""


class Suspension(Struct):
    """The reasons to end a pass before its function returns. Each branch of an async tool may add one.

    Once the suspension `has_begun`, calls that the tool makes while it unwinds have no effect.
    """

    has_begun: bool = False
    lost_ownership: bool = False
    is_out_of_time: bool = False
    task_ttl_ms: int | None = None
    wake_at_ms: int | None = None

    def sleep_until(self, wake_at_ms: int) -> None:
        """End the pass until that time (epoch milliseconds), or until the earliest of several branches'."""
        self.wake_at_ms = min(wake_at_ms, self.wake_at_ms or wake_at_ms)


class Run(Struct, eq=False):
    """One pass: its history, its inputs and requests, and how it ends.

    `fault` is the first error that decides the outcome even if the tool's code catches it. `has_ended`: the
    function has returned. A step or a question of its context is an error then. `raised_steps`: the keys of
    steps that raised. They have no entry, so later passes run them again.
    """

    history: History
    inputs: ClientInputs
    services: RunServices
    notifications: NotificationBuffer
    task: TaskOptions = TaskOptions()
    requests: InputRequests = field(default_factory=InputRequests)
    suspension: Suspension = field(default_factory=Suspension)
    fault: Exception | None = None
    has_ended: bool = False
    raised_steps: list[str] = field(default_factory=list)

    @property
    def is_task(self) -> bool:
        """Whether the pass is a task worker's."""
        return self.task.recorder is not None and not self.task.is_parked

    def redactable_values(self) -> list[Any]:
        """Return all responses and journaled values, as JSON data: no log may quote them."""
        return [*self.inputs.responses.values(), *(entry.value for entry in self.history.entries())]

    def use_key(self, key: str, prefix: str = "") -> str:
        """Mark a key as used; return it with the prefix of its branch. Raises InvalidKey, DuplicateKey."""
        self.check_context_usable()
        if self.fault is not None:
            raise self.fault
        full = prefix + self.check_key(key)
        if len(full.encode()) > MAX_KEY_BYTES:
            raise self.fail(InvalidKey(key))
        if not self.history.use_key(full):
            raise self.fail(DuplicateKey(full))
        return full

    def check_key(self, key: str) -> str:
        if not isinstance(key, str) or not key or has_half_of_a_pair(key) or RESERVED_CHARACTERS & set(key):
            raise self.fail(InvalidKey(key))
        return key

    def check_context_usable(self) -> None:
        """Raise UsageError in a step or a `done`, and after the pass; Suspend once the pass is suspended."""
        if self.has_ended:
            raise UsageError("the context is used after its round; use the context that the function gets")
        if self.suspension.has_begun:
            raise Suspend
        if (function := running_function.get()) is not None:
            kind, key = function
            raise self.usage_error(
                f"{kind} {key!r} uses the context inside its function; call the context before it, and pass "
                "what the function needs"
            )

    def fail(self, error: E) -> E:
        """Make the error the outcome of the pass, even if the tool's code catches it; return it."""
        self.fault = self.fault or error
        return error

    def usage_error(self, problem: str) -> UsageError:
        return self.fail(UsageError(problem))

    def drift_error(self, key: str, changed: str) -> Exception:
        """Return the error for code that no longer matches the journal."""
        return self.fail(Drift(key, changed, keys_of_steps(self.history.entries())))

    def recorded_entry(self, key: str, kind: Kind) -> Entry | None:
        """Return the entry of `key`, or None. Raises Drift if it has another kind."""
        entry = self.history.entry(key)
        if entry is not None and entry.kind is not kind:
            was, now = entry.kind.name.lower(), kind.name.lower()
            raise self.drift_error(key, f"it is recorded as {was}, and the code uses it as {now}")
        return entry

    def record(self, entry: Entry, *, as_owner: bool = False) -> Entry:
        """Journal an entry and return the one that counts: in a task, another worker may have been first."""
        if self.task.recorder is not None:
            try:
                entry = self.task.recorder.record(entry, as_owner=as_owner)
            except (StoreError, ItemTooLarge, LeaseLost) as error:
                if isinstance(error, ItemTooLarge):
                    error.add_note(f"It is the result of {entry.key!r}")
                if entry.kind is Kind.STEP:
                    self.history.unstored_steps.append(entry.key)
                raise self.fail(error) from error
        self.history.add(entry)
        return entry

    def replay_or_make(self, key: str, kind: Kind, make: Callable[[], Any]) -> Any:
        """Return the recorded JSON value of `key`, or the one that `make` returns now, journaled."""
        entry = self.recorded_entry(key, kind)
        if entry is None:
            entry = self.record(Entry(key, kind, make()))
        return entry.value

    def lost_effects(self) -> list[str]:
        """Return the keys of the effects that are lost if the call ends here with an error."""
        history = self.history
        entries = history.new_entries() if self.task.recorder is None else history.entries()
        return [entry.key for entry in entries if entry.kind.is_nonrepeatable]

    def request_checkpoint(self, needs_ms: float | None = None) -> bool:
        """Check the lease of a task and the deadline; return True if the caller has to suspend.

        The deadline counts only once this pass has added an entry. Otherwise a step that takes longer than
        one round would never run.
        """
        self.check_context_usable()
        lost_ownership = not self._holds_lease()
        is_short = self.history.has_new_entries and self.services.deadline.is_short_of(needs_ms)
        self.suspension.lost_ownership |= lost_ownership
        self.suspension.is_out_of_time |= is_short
        return lost_ownership or is_short

    def _holds_lease(self) -> bool:
        if self.task.recorder is None:
            return True
        try:
            return self.task.recorder.holds_lease()
        except StoreError as error:
            raise self.fail(error) from error

    def should_notify(self) -> bool:
        """Count a notification, and return whether it is sent: once, and not while the tool unwinds."""
        return not self.suspension.has_begun and self.history.should_notify()

    def suspend(self) -> Suspend:
        """Suspend the pass, and return the exception to raise."""
        self.suspension.has_begun = True
        return Suspend()

    def changed_questions(self) -> dict[str, str]:
        """Return what changed of each question that the pass asks, since it was asked or answered before."""
        journal = self.history.journal
        known = {entry.key: entry.fingerprint for entry in journal.entries} | dict(journal.outstanding)
        changes = {
            key: before.describe_changes(request.fingerprint)
            for key, request in self.requests.items()
            if (before := known.get(key)) is not None
        }
        return {key: changed for key, changed in changes.items() if changed}

    def unasked_responses(self) -> list[str]:
        """Return the keys of this request's responses that answer no question of this call."""
        history = self.history
        asked = history.journal.outstanding
        # A pass that ends early may not reach a question that has its answer: a client may send that again.
        unused = (key for key in self.inputs.responses if key not in asked and not history.is_used(key))
        return [key for key in unused if history.entry(key) is None]

    def to_journal(self) -> Journal:
        """Return the journal for the next pass (see `Journal.unused_responses`)."""
        before = self.history.journal
        unused = {
            key: raw
            for key, raw in self.inputs.responses.items()
            if key in before.outstanding and not self.history.is_used(key)
        }
        outstanding = {key: before.outstanding[key] for key in unused} | self.requests.fingerprints()
        return replace(
            self.history.to_journal(),
            outstanding=outstanding,
            unused_responses=unused | {key: entry.value for key, entry in self.requests.url_consents.items()},
            url_wait_rounds=before.url_wait_rounds + self.requests.waits_for_urls_only,
        )


@contextmanager
def running(kind: str, key: str) -> Iterator[None]:
    """Run the function of a step, or the `done` of a question, in the block: it may not use the context."""
    token = running_function.set((kind, key))
    try:
        yield
    finally:
        running_function.reset(token)
