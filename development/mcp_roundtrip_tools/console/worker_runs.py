"""The invocations of workers for a task, and the journal as each of them saw it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.engine.journal import Entry, Fingerprint
from mcp_roundtrip.tasks.items import entry_from_item, is_in_journal
from mcp_roundtrip.tasks.model import INPUT, Task
from mcp_roundtrip.tasks.store import Item
from mcp_roundtrip_tools.console.journal_writes import JournalWrite
from mcp_roundtrip_tools.console.journals import entry_row, question_row
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation as Run


def runs_of(app: LocalApp, pk: str) -> list[Run]:
    """Return the runs for the task with this partition key, in the order of their start."""
    found = [each for each in app.recorder.background_invocations() if pk in task_keys(each.payload)]
    return sorted(found, key=lambda each: each.started_at_ms)


def task_keys(payload: bytes) -> list[str]:
    """Return the partition keys of the tasks that the event of a worker names."""
    try:
        return list(_keys(json.loads(payload)))
    except (ValueError, TypeError, AttributeError):
        return []


def _keys(event: dict[str, Any]) -> Iterator[str]:
    if "task" in event:
        yield str(event["task"])
    for record in event.get("Records", ()):
        yield from _keys(json.loads(record["body"]))


@dataclass(frozen=True, slots=True)
class _Row:
    """An item of the journal: an entry of the code, or a response of the client. `order` is its position."""

    order: int
    sort_key: str
    entry: Entry
    write: JournalWrite | None

    @property
    def is_response(self) -> bool:
        return self.sort_key.startswith(INPUT)

    @property
    def asked(self) -> Fingerprint:
        """The digests of the question of a response."""
        return self.entry.fingerprint or Fingerprint("", "")


@dataclass(frozen=True, slots=True)
class RunJournals:
    """The journal of a task. `open_questions` are the requests that wait for an answer, by key."""

    entries: Sequence[_Row]
    open_questions: Mapping[str, Fingerprint]

    def rows(self, run: Run, runs: Sequence[Run]) -> list[dict[str, Any]]:
        """Return the journal at the end of a run, with its marks."""
        marked = [(row, self._mark(row, run, runs)) for row in self.entries]
        found = [entry_row(row.entry, mark) for row, mark in marked if mark not in (None, "asked")]
        asked = {row.entry.key: row.asked for row, mark in marked if mark == "asked"}
        if run is runs[-1]:
            asked |= self.open_questions
        return found + [question_row(key, asked[key]) for key in sorted(asked)]

    def _mark(self, row: _Row, run: Run, runs: Sequence[Run]) -> str | None:
        """Return what a run did with an entry; None if the entry is newer than the run."""
        if row.is_response:
            return self._mark_response(row, run, runs)
        if row.write is None or row.write.invocation == run.id:
            return "ran" if row.write is not None else "replayed"
        return "replayed" if row.write.at_ms < run.started_at_ms else None

    def _mark_response(self, row: _Row, run: Run, runs: Sequence[Run]) -> str | None:
        at_ms = 0.0 if row.write is None else row.write.at_ms
        after = [each for each in runs if each.started_at_ms >= at_ms]
        if run in after:
            return "answered" if run is after[0] else "replayed"
        before = [each for each in runs if each.started_at_ms < at_ms]
        return "asked" if before and run is before[-1] else None


def read_run_journals(task: Task, items: Iterable[Item], writes: Mapping[str, JournalWrite]) -> RunJournals:
    """Return the journal in the items of a task."""
    rows = [
        _Row(int(item["n"]), name := str(item["sk"]), entry_from_item(item), writes.get(name))
        for item in items
        if is_in_journal(task, item)
    ]
    answered = {row.entry.key for row in rows if row.is_response}
    is_open = not task.is_terminal
    questions = {
        each.key: each.fingerprint for each in task.requests.values() if is_open and each.key not in answered
    }
    return RunJournals(sorted(rows, key=lambda row: (row.order, row.sort_key)), questions)
