"""The invocations of workers for a task, and the journal as each of them saw it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.tasks.items import entry_from_item, is_in_journal
from mcp_roundtrip.tasks.model import INPUT, Task
from mcp_roundtrip.tasks.store import Item
from mcp_roundtrip_tools.console.journals import entry_row, new_mark, question_row
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
class JournalWrite:
    """The write of an item. `invocation` is the id of the invocation that wrote it."""

    at_ms: float
    invocation: str


def journal_writes(app: LocalApp, pk: str) -> dict[str, JournalWrite]:
    """Return the writes of the journal in a partition, by sort key; those of dropped records are unknown."""
    found: dict[str, JournalWrite] = {}
    for invocation in app.recorder.invocations():
        for call in invocation.service_calls:
            for written, sort_key in call.journal_keys:
                if written == pk:
                    found.setdefault(sort_key, JournalWrite(call.started_at_ms, invocation.id))
    return found


def run_journals(
    task: Task, items: Iterable[Item], writes: Mapping[str, JournalWrite], runs: Sequence[Run]
) -> list[list[dict[str, Any]]]:
    """Return the journal in the items of a task at the end of each run, with its marks."""
    found: list[list[dict[str, Any]]] = [[] for _ in runs]
    asked: list[dict[str, Fingerprint]] = [{} for _ in runs]
    answered: set[str] = set()
    kept = [item for item in items if is_in_journal(task, item)]
    for item in sorted(kept, key=lambda item: (int(item["n"]), str(item["sk"]))):
        entry, sort_key = entry_from_item(item), str(item["sk"])
        write, is_response = writes.get(sort_key), sort_key.startswith(INPUT)
        first = _run_after(write, runs) if is_response else _run_that_wrote(write, runs)
        if is_response:
            answered.add(entry.key)
            if first > 0:
                asked[first - 1][entry.key] = entry.fingerprint or Fingerprint("", "")
        for number in range(max(first, 0), len(runs)):
            mark = new_mark(entry) if number == first else "replayed"
            found[number].append(entry_row(entry, mark))
    if runs and not task.is_terminal:
        asked[-1] |= {
            each.key: each.fingerprint for each in task.requests.values() if each.key not in answered
        }
    return [
        rows + [question_row(key, questions[key]) for key in sorted(questions)]
        for rows, questions in zip(found, asked, strict=True)
    ]


def _run_that_wrote(write: JournalWrite | None, runs: Sequence[Run]) -> int:
    """Return the position of the run that wrote an entry; -1 if it was there before all of them."""
    ids = [run.id for run in runs]
    return ids.index(write.invocation) if write is not None and write.invocation in ids else -1


def _run_after(write: JournalWrite | None, runs: Sequence[Run]) -> int:
    """Return the position of the first run that found a response; behind the last one if none has yet."""
    at_ms = 0.0 if write is None else write.at_ms
    return next((number for number, run in enumerate(runs) if run.started_at_ms >= at_ms), len(runs))
