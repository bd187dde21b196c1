"""One pass over a tool's body: what is replayed, what is new, and where the pass stands.

A key is used once in a run, and names the same thing in every pass and every deployment. `asking` has the
rules about questions and their answers, `effects` those about steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_roundtrip.engine.budget import Budget
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.errors import (
    Drift,
    DuplicateKey,
    InvalidKey,
    ItemTooLarge,
    StoreError,
    Suspend,
)

if TYPE_CHECKING:
    from mcp_roundtrip.engine.context_call import Origin

RESERVED: Final = frozenset("~/")
"""Characters authors may not use in keys: "/" ends a branch's prefix, "~" is kept for renamed questions."""

MAX_KEY: Final = 900
"""Bytes of a key with the prefixes of its branches: DynamoDB finds items by sort keys of at most 1,024."""

inside_function: ContextVar[tuple[str, str] | None] = ContextVar("mcp_roundtrip_inside", default=None)
"""Kind and key of the step, or the question with `done`, whose function is running. It may not use the
context: a replay could not tell what ran."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a run is given from outside.

    `clock` returns epoch seconds, `random_bytes(n)` n random bytes, `sign_link(key, flow_id, expires_at)` a
    token for a URL (epoch seconds). `pause_ms` returns after so many milliseconds, `step_failed` gets
    the step, its error, and whether it runs again, of errors that the tool's code does not get to see.
    `pause_ms_async` is `pause_ms` for coroutines. `identity` is the same in every call with the same caller,
    tool and arguments; None for callers who cannot be told apart. It raises SettingsError.
    """

    budget: Budget
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    sign_link: Callable[[str, str, int], str]
    pause_ms: Callable[[float], None]
    step_failed: Callable[[str, Exception, bool], None]
    pause_ms_async: Callable[[float], Awaitable[None]]
    identity: Callable[[], str | None]

    def without_reserve(self) -> Environment:
        """For a pass that cannot be put off: it begins new work as long as there is time at all."""
        return replace(self, budget=replace(self.budget, reserve_ms=0))


class Recorder(Protocol):
    """Keeps what happens in a task as it happens. Both raise StoreError."""

    def record(self, entry: Entry) -> Entry:
        """Keep an entry; returns the one that counts, which is another's if that one was first."""
        ...

    def holds_lease(self) -> bool:
        """Whether the task is still this worker's: not cancelled, not taken over."""
        ...


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a run may do about tasks.

    `recorder` is there in a task alone. `may_start` says whether this call may become one: the tool says so,
    and the client declared the extension.
    """

    recorder: Recorder | None = None
    may_start: bool = False
    is_offered: bool = False
    """Whether the tool was registered with a task at all."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits for its client; `is_opened` for a page that the user has agreed to open."""

    fingerprint: Fingerprint
    method: str
    params: Mapping[str, Any]
    is_opened: bool = False

    def to_wire(self) -> dict[str, Any]:
        """The request object of an `inputRequests` entry."""
        return {"method": self.method, "params": dict(self.params)}


@dataclass(slots=True)
class Run:
    """The state of one pass.

    `resumed` says whether the request carried a state, `takes_defaults` whether a question that the client
    cannot be asked falls back to its default, `answers_from_model` whether what is offered was passed on by a
    model, `waits_for_pages` whether a page that is not complete yet is waited for. `user_only_reached` says
    whether the pass has come to a question that only the user may answer. `opened` holds the consents to
    pages that a task is to wait for. `unawaited` are the calls of an AsyncContext that nothing has awaited
    yet.
    """

    journal: Journal
    offered: Mapping[str, Any]
    resumed: bool
    capabilities: Mapping[str, Any]
    environment: Environment
    reports: NotificationBuffer
    tasks: TaskOptions = TaskOptions()
    takes_defaults: bool = True
    answers_from_model: bool = False
    user_only_reached: bool = False
    waits_for_pages: bool = True
    pending: dict[str, Pending] = field(default_factory=dict)
    opened: dict[str, Entry] = field(default_factory=dict)
    unawaited: list[Origin] = field(default_factory=list)
    ended: bool = False
    fault: Exception | None = None
    task_ttl_ms: int | None = None
    wake_at_ms: int | None = None
    is_stopped: bool = False
    is_short: bool = False
    _entries: dict[str, Entry] = field(init=False)
    _used: set[str] = field(default_factory=set)
    _progressed: bool = False
    _reported: int = 0

    def __post_init__(self) -> None:
        self._entries = {entry.key: entry for entry in self.journal.entries}

    # -- keys and faults ----------------------------------------------------------------------------

    def claim(self, key: str, prefix: str = "") -> str:
        """Take a key for this run; returns it with its branch's prefix.

        Raises Suspend once the run ended, and its fault again once it has one: nothing happens after it.
        """
        if self.ended:
            raise Suspend
        self.refuse_inside_function()
        if self.fault is not None:
            raise self.fault
        full = prefix + self.valid(key)
        if len(full.encode()) > MAX_KEY:
            raise self.fail(InvalidKey(key))
        if full in self._used:
            raise self.fail(DuplicateKey(full))
        self._used.add(full)
        return full

    def valid(self, key: str) -> str:
        """`key`, if an author may use it. Raises InvalidKey."""
        if not isinstance(key, str) or not key or not RESERVED.isdisjoint(key) or not _is_utf8(key):
            raise self.fail(InvalidKey(key))
        return key

    def refuse_inside_function(self) -> None:
        """Raise UsageError while a step's function, or the `done` of a question, is running."""
        inside = inside_function.get()
        if inside is not None:
            from mcp_roundtrip.engine import usage_errors

            raise self.fail(usage_errors.inside_function(*inside))

    def fail(self, error: Exception) -> Exception:
        """Remember an error that decides the run's outcome even if the tool's own code swallows it."""
        self.fault = self.fault or error
        return error

    def drift(self, key: str, changed: str) -> Exception:
        """The error of code that does not match the journal any more."""
        return self.fail(Drift(key, changed))

    # -- entries ------------------------------------------------------------------------------------

    def values(self) -> list[Any]:
        """All answers and results that the run has, as JSON data."""
        return [*self.offered.values(), *(entry.value for entry in self._entries.values())]

    def answers_before(self, prefix: str) -> list[list[Any]]:
        """The keys and answers of what this pass has asked so far, in a branch and in those around it."""
        keys = sorted(key for key in self._used if prefix.startswith(key[: key.rfind("/") + 1]))
        entries = (self._entries.get(key) for key in keys)
        return [[entry.key, entry.value] for entry in entries if entry and entry.kind is Kind.ANSWER]

    def entry(self, key: str) -> Entry | None:
        """What the journal holds under `key`."""
        return self._entries.get(key)

    def recorded(self, key: str, kind: Kind) -> Entry | None:
        """The entry of an earlier pass. Raises Drift when the key named something else then."""
        entry = self._entries.get(key)
        if entry is not None and entry.kind is not kind:
            was, now = entry.kind.name.lower(), kind.name.lower()
            raise self.drift(key, f"is recorded as {was}, and the code uses it as {now}")
        return entry

    def record(self, entry: Entry) -> Entry:
        """Journal something that has just happened; returns the entry that counts."""
        if self.tasks.recorder is not None:
            try:
                entry = self.tasks.recorder.record(entry)
            except (StoreError, ItemTooLarge) as error:
                raise self.fail(error) from error
        self._entries[entry.key] = entry
        self._progressed = True
        self._reported = 0
        return entry

    def forget(self, key: str) -> None:
        """Take an entry back."""
        del self._entries[key]

    def is_last(self, key: str, besides: Collection[str]) -> bool:
        """Whether nothing is journaled after `key` but what is in `besides`."""
        for later in reversed(self._entries):
            if later == key:
                return True
            if later not in besides and later.partition("~")[0] != key:
                return False
        return False

    @property
    def has_effects(self) -> bool:
        """Whether anything is journaled that running the code again would not do alike."""
        return any(entry.kind.is_nonrepeatable for entry in self._entries.values())

    def lost_with_the_call(self) -> list[str]:
        """The keys of what ran and cannot be continued if the call ends here: in no state the client has."""
        kept = () if self.tasks.recorder else {entry.key for entry in self.journal.entries}
        return [
            key for key, entry in self._entries.items() if entry.kind.is_nonrepeatable and key not in kept
        ]

    # -- the end of the pass ------------------------------------------------------------------------

    def suspend(self) -> Suspend:
        """End the run for good: whatever the tool's code tries on its way out, nothing more happens."""
        self.ended = True
        self.unawaited = []  # their code stands where it is, and may await them in the next pass
        return Suspend()

    def sleep_until(self, wake_at_ms: int) -> None:
        """Have the task wait for that time (epoch milliseconds); for the first of several branches'."""
        self.wake_at_ms = min(wake_at_ms, self.wake_at_ms or wake_at_ms)

    def request_checkpoint(self, needs_ms: float | None = None) -> bool:
        """Whether to give the request back: time is short, and this pass has got something done.

        Without that second condition a step longer than the budget would be put off for ever.
        """
        self.refuse_inside_function()
        if self.tasks.recorder is not None and not self._may_go_on(self.tasks.recorder):
            self.is_stopped = True
        self.is_short = self._progressed and self.environment.budget.is_short_of(needs_ms)
        return self.is_stopped or self.is_short

    def _may_go_on(self, recorder: Recorder) -> bool:
        try:
            return recorder.holds_lease()
        except StoreError as error:
            raise self.fail(error) from error

    def journal_now(self) -> Journal:
        """The journal to seal: what happened, what is being asked, and answers kept for another build."""
        held = {
            key: raw
            for key, raw in self.offered.items()
            if self.resumed and key in self.journal.outstanding and key not in self._used
        }
        asked = {key: pending.fingerprint for key, pending in self.pending.items()}
        asked |= {key: self.journal.outstanding[key] for key in held}
        for key, entry in self.opened.items():
            assert entry.fingerprint is not None
            held[key], asked[key] = entry.value, entry.fingerprint
        entries = tuple(self._entries.values())
        waits = self.journal.url_wait_rounds + self.only_waits
        return Journal(self.journal.flow_id, entries, asked, held, self._reported, waits)

    @property
    def asks_anew(self) -> bool:
        """Whether something is asked that the client has not answered."""
        return any(not pending.is_opened for pending in self.pending.values())

    @property
    def only_waits(self) -> bool:
        """Whether all that is asked are pages that the user has agreed to open, and not finished."""
        return bool(self.pending) and not self.asks_anew

    # -- reports ------------------------------------------------------------------------------------

    def should_report(self) -> bool:
        """Whether a report that is made now has not been made by an earlier pass.

        A pass that covers old ground is silent until it has passed the last entry, and then swallows as many
        reports as were made between that entry and the end of the pass that sealed the journal.
        """
        # What a step remembers besides its result has the step's key, and "~".
        if not self._progressed and not {key.partition("~")[0] for key in self._entries} <= self._used:
            return False
        self._reported += 1
        return self._progressed or self._reported > self.journal.trailing_notifications


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
