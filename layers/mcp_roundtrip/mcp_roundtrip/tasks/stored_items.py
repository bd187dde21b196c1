"""Read and write the items of a task besides its transitions: its call, journal, responses and result."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.journal import Journal
from mcp_roundtrip.tasks.items import (
    TaskCall,
    chunk_key,
    entry_to_item,
    join_result_chunks,
    response_key,
    response_to_item,
)
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task, json_value
from mcp_roundtrip.tasks.store import TaskStore


def put_history(store: TaskStore, task: Task, call: TaskCall, journal: Journal) -> None:
    """Write the call and the journal of a task that does not exist yet.

    Raises StoreError, and ItemTooLarge for the call or an entry.
    """
    for order, entry in enumerate(journal.entries):
        store.put_new(entry_to_item(task, entry, order))
    for order, (key, raw) in enumerate(journal.unused_responses.items(), len(journal.entries)):
        asked = OutstandingRequest(key, journal.outstanding[key], {}, order)
        store.put_new(response_to_item(task, key, asked, raw))
    store.put_new(call.to_item(task))


def read_task(store: TaskStore, pk: str) -> Task | None:
    """Return the task with this partition key, or None. Raises StoreError."""
    item = store.get(pk, TASK)
    return None if item is None else Task.from_item(item)


def with_result(store: TaskStore, task: Task) -> Task:
    """Return the task with a result that is stored in chunks. Raises StoreError."""
    if not task.result_chunks:
        return task
    keys = (chunk_key(task.result_owner, number) for number in range(task.result_chunks))
    chunks = [store.get(task.pk, key) for key in keys]
    return replace(task, result=join_result_chunks(chunk for chunk in chunks if chunk is not None))


def stored_responses(store: TaskStore, pk: str, wire_keys: Collection[str]) -> dict[str, Any]:
    """Return the responses that count among those to these requests, by wire key. Raises StoreError."""
    task = read_task(store, pk)
    submissions = {} if task is None else task.submissions
    sort_keys = {key: response_key(key, submissions[key]) for key in wire_keys if key in submissions}
    items = {key: store.get(pk, sort_key) for key, sort_key in sort_keys.items()}
    return {key: json_value(item["v"]) for key, item in items.items() if item is not None}
