"""Journals as the console shows them: each entry with a mark that says what a round did with it.

A question is *asked*; an answer is *answered*, and what the code ran is *ran*, in the round that accepted or
ran it. In later rounds, which find it in the state or in the table, it is *replayed*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.protocol.canonical import compact_json

_WORDS: Final[Mapping[Kind, str]] = {Kind.WAKE: "sleep", Kind.FAILED: "failed attempts"}
"""Kinds of entries that have another name here."""


def journal_rows(journal: Journal, before: Journal | None = None) -> list[dict[str, Any]]:
    """Return the entries and the open questions of a journal; `before` is what its round started with."""
    known = {} if before is None else {entry.key: entry for entry in before.entries}
    rows = [entry_row(entry, _mark(entry, known)) for entry in journal.entries]
    return rows + [question_row(key, asked) for key, asked in journal.outstanding.items()]


def question_row(key: str, asked: Fingerprint) -> dict[str, Any]:
    """Return a question that waits for its answer. `bytes` is the length of its digests in a state."""
    size = _size([asked.message, asked.form])
    return {"key": key, "kind": "question", "mark": "asked", "value": None, "bytes": size}


def entry_row(entry: Entry, mark: str) -> dict[str, Any]:
    """Return one entry. `bytes` is the length of its JSON in a state."""
    size = _size([entry.key, entry.kind.value, entry.value])
    kind = _WORDS.get(entry.kind, entry.kind.name.lower())
    return {"key": entry.key, "kind": kind, "mark": mark, "value": entry.value, "bytes": size}


def new_mark(entry: Entry) -> str:
    """Return the mark of an entry that the round added."""
    return "answered" if entry.kind is Kind.ANSWER else "ran"


def _mark(entry: Entry, known: Mapping[str, Entry]) -> str:
    found = known.get(entry.key)
    return "replayed" if found is not None and found.kind is entry.kind else new_mark(entry)


def _size(value: Any) -> int:
    return len(compact_json(value))
