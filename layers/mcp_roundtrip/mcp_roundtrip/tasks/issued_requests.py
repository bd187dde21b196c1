"""Which requests a pass over the tool of a task leaves outstanding, and which responses it accepted."""

from __future__ import annotations

from typing import Final

from mcp_roundtrip.engine.inputs import InputRequest
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.journal import Kind
from mcp_roundtrip.tasks.items import TaskHistory
from mcp_roundtrip.tasks.model import OutstandingRequest, Task
from mcp_roundtrip.tasks.recorder import TaskRecorder

MAX_ASKED: Final = 20
"""How often a question is asked. Each refused answer stays in the table, and every later pass reads it."""


def issue_requests(
    task: Task, recorder: TaskRecorder, run: Run
) -> tuple[dict[str, int], dict[str, OutstandingRequest]]:
    """Return the wire keys issued for each key, and the outstanding requests of a pass by wire key."""
    issued, requests = dict(task.issued_counts), dict[str, OutstandingRequest]()
    outstanding = {asked.key: wire_key for wire_key, asked in task.requests.items()}
    for order, (key, request) in enumerate(run.requests.items(), recorder.next_order):
        present = outstanding.get(key)
        if present is not None and _is_unchanged(task.requests[present], request):
            requests[present] = task.requests[present]
            continue
        issued[key] = issued.get(key, 0) + 1
        # A wire key is used for one request in the task's lifetime. Keys of authors do not contain "~".
        wire_key = key if issued[key] == 1 else f"{key}~{issued[key]}"
        requests[wire_key] = OutstandingRequest(
            key, request.fingerprint, request.to_wire(), order, request.channel
        )
    return issued, requests


def key_asked_too_often(task: Task, run: Run) -> str | None:
    """Return the key of a question that the pass asks again although it was asked `MAX_ASKED` times."""
    open_requests = {asked.key: asked for asked in task.requests.values()}
    for key, request in run.requests.items():
        asked = open_requests.get(key)
        is_new = asked is None or not _is_unchanged(asked, request)
        if is_new and task.issued_counts.get(key, 0) >= MAX_ASKED:
            return key
    return None


def _is_unchanged(asked: OutstandingRequest, request: InputRequest) -> bool:
    return (asked.fingerprint, asked.channel) == (request.fingerprint, request.channel)


def accepted_keys(task: Task, history: TaskHistory, run: Run) -> set[str]:
    """Return the wire keys of the responses that the journal contains."""
    taken = {
        wire_key
        for key, wire_key in history.response_keys.items()
        if (entry := run.history.entry(key)) is not None and entry.kind is Kind.ANSWER
    }
    return taken | set(task.accepted_keys)
