"""Questions and their answers.

- A journaled answer counts while the question's fingerprint is the one it was given to, and while it still
  validates. Otherwise the question is asked again if nothing later is journaled; if something is, the run
  ends in `Drift`, because what came later may rest on that answer. Questions of one `ask` do not rest on
  each other.
- An answer that arrives with a state must belong to a question that state lists, unchanged.
- An answer that arrives without any state is taken for questions reached before the first journaled effect
  and before the first question that is `user_only`. It is never an answer to that question, nor to those of
  the same `ask`, nor to a later one. URLs are the exception: `done` decides about them, not the answer.
- An answer that does not fit is asked again, with the reason in the message.
- A question the client cannot be asked falls back to its default, and that choice is journaled.
- Consent to a URL is an answer once `done` says that the page is complete: `waiting` has the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.questions import ElicitUrl, Question, Unset
from mcp_roundtrip.engine.run import Pending, Run
from mcp_roundtrip.errors import (
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidAnswer,
    MissingClientCapability,
)
from mcp_roundtrip.protocol.capabilities import CapabilityPath, missing

Look = tuple[ElicitUrl | None, float]
"""Asks to wait for that time (milliseconds), and then for what `done` of the question, if any, returns."""

Opened = dict[str, tuple[ElicitUrl, Entry]]
"""URLs that the user has agreed to open, by key, and the entry that says so once the page is complete."""


def ask(
    run: Run, questions: Sequence[Question[Any]], prefix: str = ""
) -> Generator[Look, bool | None, list[Any] | None]:
    """The answers, in order; None when at least one is pending and the caller has to suspend.

    The caller sends the answer to each `Look`. Raises MissingClientCapability (naming all that is missing),
    ElicitationDeclined and ElicitationCancelled.
    """
    keyed = {run.claim(question.key, prefix): question for question in questions}
    if not run.resumed and any(question.is_user_only() for question in questions):
        run.user_only_reached = True
    answers: dict[str, _Answer] = {}
    reasons: dict[str, str] = {}
    opened: Opened = {}
    for key, question in keyed.items():
        try:
            answer = _replayed(run, key, question, keyed) or _fresh(run, key, question, opened)
        except InvalidAnswer as invalid:
            reasons[key] = invalid.reason
        else:
            if answer is not None:
                answers[key] = answer
    clock_ms = run.environment.budget.clock_ms
    began_ms = clock_ms() if opened else 0
    for key, (page, entry) in list(opened.items()):
        if (yield page, 0):
            answers[key] = _complete(run, entry)
            del opened[key]
    unanswered = {key: question for key, question in keyed.items() if key not in answers}
    _gate(run, unanswered)
    for key, question in unanswered.items():
        if _is_unaskable(run, question):  # so it has a default: `_gate` let it pass
            run.record(Entry(key, Kind.DEFAULT))
            answers[key] = _Answer(question.default)
        elif key not in opened:
            run.pending[key] = _pending(question, reasons.get(key))
    if opened:
        from mcp_roundtrip.engine.url_polling import wait  # most calls have no page to wait for

        for key in (yield from wait(run, opened, clock_ms() - began_ms)):
            answers[key] = _complete(run, opened[key][1])
    return None if len(answers) < len(keyed) else [answers[key].get() for key in keyed]


def _replayed(run: Run, key: str, question: Question[Any], siblings: Collection[str]) -> _Answer | None:
    """The journaled answer; None, or InvalidAnswer, when it does not count any more and the entry is gone."""
    entry = run.entry(key)
    if entry is None:
        return None
    if entry.kind is Kind.DEFAULT:
        if not isinstance(question.default, Unset):
            return _Answer(question.default)
        _take_back(run, key, siblings, "default")
        return None
    if entry.kind is not Kind.ANSWER or entry.fingerprint is None:
        raise run.drift(key, f"is recorded as {entry.kind.name.lower()}, and the code uses it as question")
    changed = entry.fingerprint.changes(question.fingerprint())
    if changed:
        _take_back(run, key, siblings, changed)
        return None
    try:
        return _Answer.read(key, question, entry.value)
    except InvalidAnswer:
        _take_back(run, key, siblings, "model (which the recorded answer does not fit)")
        raise


def _take_back(run: Run, key: str, siblings: Collection[str], changed: str) -> None:
    """Forget an answer so that its question is asked again. Raises Drift if something may rest on it."""
    if not run.is_last(key, siblings):
        raise run.drift(key, f"its {changed} changed after something later was recorded")
    run.forget(key)


def _complete(run: Run, entry: Entry) -> _Answer:
    """The answer that consent to a URL is now."""
    run.record(entry)
    return _Answer(None)


def _fresh(run: Run, key: str, question: Question[Any], opened: Opened) -> _Answer | None:
    """The answer that came with this request, journaled; None when there is none to this question.

    None, too, for consent to a URL, which is put into `opened`: it is no answer before the page is complete.
    """
    if key not in run.offered:
        return None
    fingerprint = question.fingerprint()
    if run.resumed:
        counts = run.journal.outstanding.get(key) == fingerprint
    else:
        counts = not run.has_effects and not (run.user_only_reached and question.rests_on_answer)
    if not counts:
        return None
    raw = run.offered[key]
    answer = _Answer.read(key, question, raw)
    entry = Entry(key, Kind.ANSWER, question.kept(raw), fingerprint)
    if isinstance(question, ElicitUrl) and answer.refusal is None:
        opened[key] = question, entry
        return None
    run.record(entry)
    return answer


def _gate(run: Run, questions: Mapping[str, Question[Any]]) -> None:
    """Refuse to ask what the client did not declare, unless the question has a default that may be taken."""
    unaskable = {
        key: question
        for key, question in questions.items()
        if (isinstance(question.default, Unset) or not run.takes_defaults) and _is_unaskable(run, question)
    }
    if unaskable:
        needed: list[CapabilityPath] = [path for question in unaskable.values() for path in question.needs()]
        required = missing(run.capabilities, needed) or missing({}, needed)
        raise MissingClientCapability(required, unaskable, lost=run.lost_with_the_call())


def _is_unaskable(run: Run, question: Question[Any]) -> bool:
    """Whether the client cannot put the question to its user, or to whom else it is for."""
    only_by_model = run.answers_from_model and run.user_only_reached and question.rests_on_answer
    return only_by_model or bool(missing(run.capabilities, question.needs()))


def _pending(question: Question[Any], reason: str | None) -> Pending:
    params = question.params()
    if reason is not None and "message" in params:
        params["message"] += f"\n\nThe previous answer was not accepted. {reason}"
    return Pending(question.fingerprint(), question.method, params)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A typed answer, or the user's refusal to give one."""

    value: Any
    refusal: ElicitationDeclined | ElicitationCancelled | None = None

    @classmethod
    def read(cls, key: str, question: Question[Any], raw: Any) -> _Answer:
        try:
            return cls(question.read(deepcopy(raw)))  # the tool may change what it gets, the journal stays
        except (ElicitationDeclined, ElicitationCancelled) as refusal:
            return cls(None, type(refusal)(key))  # with the branch's prefix, which the question does not know

    def get(self) -> Any:
        if self.refusal is not None:
            raise self.refusal
        return self.value
