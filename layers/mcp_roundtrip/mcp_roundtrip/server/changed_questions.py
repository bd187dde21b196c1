"""Finds questions that are worded differently than in the round before, so that answers to them are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_roundtrip.engine.run import Run
    from mcp_roundtrip.ports import Observer


def record_changed_questions(run: Run, named: dict[str, str], observer: Observer) -> None:
    """Record `question_changed` for each open question that is not the one its client saw.

    A price that has moved is a good reason for that. A text with the time in it, or the items of a set in any
    order, changes in every round, and no answer to it ever counts. The state holds fingerprints only, and a
    text may quote arguments, answers and results, so the record has the key and which part changed.
    """
    journal = run.history.journal
    known = {entry.key: entry.fingerprint for entry in journal.entries} | dict(journal.outstanding)
    for key, request in run.requests.items():
        before = known.get(key)
        changed = before and before.changes(request.fingerprint)
        if changed:
            observer.record("question_changed", **named, key=key, changed=changed)
