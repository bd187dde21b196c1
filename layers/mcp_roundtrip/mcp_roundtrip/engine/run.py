"""One pass over a tool's body: what is replayed, what is new, and why it ends.

The rules, shared by the synchronous and the asynchronous context:

- A key is used once in a run. It names the same thing in every pass and every deployment.
- A journaled answer counts while the question's fingerprint is the one it was given to, and while it still
  validates. Otherwise the question is asked again if nothing later is journaled; if something is, the run
  ends in `Drift`, because what came later may rest on that answer.
- An answer that arrives with a state must belong to a question that state lists, unchanged. An answer that
  arrives without any state is taken for questions reached before the first journaled effect.
- An answer that does not fit is asked again, with the reason in the message.
- A question the client cannot be asked falls back to its default, and that choice is journaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.engine.budget import Budget
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.engine.questions import NotDone, Question, Unset
from mcp_roundtrip.engine.reports import Reports
from mcp_roundtrip.errors import (
    Drift,
    DuplicateKey,
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidAnswer,
    InvalidKey,
    MissingClientCapability,
    Suspend,
    UsageError,
)
from mcp_roundtrip.protocol.capabilities import Path, missing

RESERVED: Final = frozenset("~/")
"""Characters authors may not use in keys: "/" ends a branch's prefix, "~" is kept for renamed questions."""

inside_step: ContextVar[str | None] = ContextVar("mcp_roundtrip_inside_step", default=None)
"""The step whose function is running: it may not use the context, or a replay could not tell what ran."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a run is given from outside.

    `clock` returns epoch seconds, `random_bytes(n)` n random bytes, `sign_link(key, run_id, expires_at)` a
    token for a URL (epoch seconds).
    """

    budget: Budget
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    sign_link: Callable[[str, str, int], str]


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits for its client; `reason` says why an earlier answer was not taken."""

    fingerprint: Fingerprint
    method: str
    params: Mapping[str, Any]

    def to_wire(self) -> dict[str, Any]:
        """The request object of an `inputRequests` entry."""
        return {"method": self.method, "params": dict(self.params)}


@dataclass(slots=True)
class Run:
    """The state of one pass. `resumed` says whether the request carried a state."""

    journal: Journal
    offered: Mapping[str, Any]
    resumed: bool
    capabilities: Mapping[str, Any]
    environment: Environment
    reports: Reports
    pending: dict[str, Pending] = field(default_factory=dict)
    shed: bool = False
    ended: bool = False
    fault: Exception | None = None
    _entries: dict[str, Entry] = field(init=False)
    _used: set[str] = field(default_factory=set)
    _recorded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._entries = {entry.key: entry for entry in self.journal.entries}

    # -- keys ---------------------------------------------------------------------------------------

    def claim(self, key: str, prefix: str = "") -> str:
        """Take a key for this run; returns it with its branch's prefix. Raises Suspend once the run ended."""
        if self.ended:
            raise Suspend
        if inside_step.get() is not None:
            raise self._fault(UsageError(f"step {inside_step.get()!r} used its context: steps do not nest"))
        if not isinstance(key, str) or not key or not RESERVED.isdisjoint(key):
            raise self._fault(InvalidKey(key))
        if prefix + key in self._used:
            raise self._fault(DuplicateKey(prefix + key))
        self._used.add(prefix + key)
        return prefix + key

    def _fault(self, error: Exception) -> Exception:
        """Remember an error that decides the run's outcome even if the tool's own code swallows it."""
        self.fault = self.fault or error
        return error

    def _drift(self, key: str, changed: str) -> Exception:
        return self._fault(Drift(key, changed))

    # -- questions ----------------------------------------------------------------------------------

    def ask(self, questions: Sequence[Question[Any]], prefix: str = "") -> list[Any] | None:
        """The answers, in order; None when at least one is pending and the caller has to suspend.

        Raises MissingClientCapability (naming all that is missing), ElicitationDeclined and
        ElicitationCancelled.
        """
        keyed = {self.claim(question.key, prefix): question for question in questions}
        answers: dict[str, _Answer] = {}
        for key, question in keyed.items():
            answer = self._replayed(key, question) or self._fresh(key, question)
            if answer is not None:
                answers[key] = answer
        self._gate(
            question for key, question in keyed.items() if key not in answers and key not in self.pending
        )
        for key, question in keyed.items():
            if key not in answers and key not in self.pending:
                if missing(self.capabilities, question.needs()):  # so it has a default: `_gate` let it pass
                    self.record(Entry(key, Kind.DEFAULT))
                    answers[key] = _Answer(question.default)
                else:
                    self._pend(key, question)
        return None if len(answers) < len(keyed) else [answers[key].get() for key in keyed]

    def _replayed(self, key: str, question: Question[Any]) -> _Answer | None:
        """The journaled answer; None when there is none that counts, and then the entry is gone."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.kind is Kind.DEFAULT and not isinstance(question.default, Unset):
            return _Answer(question.default)
        if entry.kind is not Kind.ANSWER or entry.fingerprint is None:
            raise self._drift(key, f"was recorded as {entry.kind.name.lower()} and is a question now")
        changed = entry.fingerprint.changes(question.fingerprint())
        if not changed:
            try:
                return _Answer.read(question, entry.value)
            except InvalidAnswer:
                changed = "model (the recorded answer does not fit it)"
        if next(reversed(self._entries)) != key:
            raise self._drift(key, f"its {changed} changed after later steps were recorded")
        del self._entries[key]
        return None

    def _fresh(self, key: str, question: Question[Any]) -> _Answer | None:
        """The answer that came with this request, journaled; None when there is none to this question."""
        if key not in self.offered or not self._counts(key, question):
            return None
        raw = self.offered[key]
        try:
            answer = _Answer.read(question, raw)
            if answer.refusal is None:
                question.confirm()
        except InvalidAnswer as invalid:
            self._pend(key, question, invalid.reason)
            return None
        except NotDone:
            return None
        self.record(Entry(key, Kind.ANSWER, question.kept(raw), question.fingerprint()))
        return answer

    def _counts(self, key: str, question: Question[Any]) -> bool:
        if self.resumed:
            return self.journal.asked.get(key) == question.fingerprint()
        return not any(entry.kind.is_effect for entry in self._entries.values())

    def _gate(self, questions: Iterable[Question[Any]]) -> None:
        """Refuse to ask what the client did not declare, unless the question has a default."""
        needed: list[Path] = [
            path for question in questions if isinstance(question.default, Unset) for path in question.needs()
        ]
        required = missing(self.capabilities, needed)
        if required:
            raise MissingClientCapability(required)

    def _pend(self, key: str, question: Question[Any], reason: str | None = None) -> None:
        params = question.params()
        if reason is not None and "message" in params:
            params["message"] += f"\n\nThe previous answer was not accepted. {reason}"
        self.pending[key] = Pending(question.fingerprint(), question.method, params)

    def suspend(self) -> Suspend:
        """End the run for good: whatever the tool's code tries on its way out, nothing more happens."""
        self.ended = True
        return Suspend()

    # -- steps and other effects --------------------------------------------------------------------

    def recorded(self, key: str, kind: Kind) -> Entry | None:
        """The entry of an earlier pass. Raises Drift when the key named something else then."""
        entry = self._entries.get(key)
        if entry is not None and entry.kind is not kind:
            raise self._drift(
                key, f"was recorded as {entry.kind.name.lower()} and is a {kind.name.lower()} now"
            )
        return entry

    def no_longer_fits(self, key: str) -> Exception:
        """The Drift of a step whose recorded result its return annotation refuses."""
        return self._drift(key, "its recorded result does not fit its return annotation any more")

    def record(self, entry: Entry) -> None:
        """Journal something that has just happened."""
        self._entries[entry.key] = entry
        self._recorded.add(entry.key)

    def wants_checkpoint(self, needs_ms: float | None = None) -> bool:
        """Whether to give the request back: time is short, and this pass has got something done.

        Without that second condition a step longer than the budget would be put off for ever.
        """
        return bool(self._recorded) and self.environment.budget.is_short_of(needs_ms)

    # -- where the run stands -----------------------------------------------------------------------

    @property
    def replaying(self) -> bool:
        """Whether the body is still on ground that an earlier pass covered."""
        if not self.resumed or self._recorded:
            return False
        answers_expected = self.journal.asked.keys() - self.journal.held.keys()
        return bool(answers_expected) or not self._entries.keys() <= self._used

    @property
    def unvisited(self) -> tuple[str, ...]:
        """Journaled keys that this pass did not come to."""
        return tuple(key for key in self._entries if key not in self._used)

    def journal_now(self) -> Journal:
        """The journal to seal: what happened, what is being asked, and answers kept for another build."""
        held = {
            key: raw
            for key, raw in self.offered.items()
            if self.resumed and key in self.journal.asked and key not in self._used
        }
        asked = {key: pending.fingerprint for key, pending in self.pending.items()}
        asked |= {key: self.journal.asked[key] for key in held}
        return Journal(self.journal.run_id, tuple(self._entries.values()), asked, held)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A typed answer, or the user's refusal to give one."""

    value: Any
    refusal: ElicitationDeclined | ElicitationCancelled | None = None

    @classmethod
    def read(cls, question: Question[Any], raw: Any) -> _Answer:
        try:
            return cls(question.read(raw))
        except (ElicitationDeclined, ElicitationCancelled) as refusal:
            return cls(None, refusal)

    def get(self) -> Any:
        if self.refusal is not None:
            raise self.refusal
        return self.value
