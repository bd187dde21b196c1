"""The tasks in the tables of the running template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.tasks.items import TaskCall, join_result_chunks
from mcp_roundtrip.tasks.model import CALL, RESULT, TASK, Task
from mcp_roundtrip.tasks.store import Item
from mcp_roundtrip_tools.console.emulated_table import EmulatedTable
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.console.records import changes_document
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.run_journals import RunJournals, read_run_journals
from mcp_roundtrip_tools.console.task_runs import WorkerRun, runs_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.changed_questions import open_changed_questions
from mcp_roundtrip_tools.template.model import function_name

TABLE: Final = "MCP_TASK_TABLE"

MAX_TASKS: Final = 200
"""The tasks that are listed, the newest first."""


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task with its call, and its table."""

    table: EmulatedTable
    task: Task
    call: TaskCall | None


def list_tasks(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET tasks`."""
    found = sorted(_all_tasks(app), key=lambda each: each.task.created_at_ms, reverse=True)[:MAX_TASKS]
    return {"tasks": [_summary(each, runs_of(app, each.task.pk)) for each in found]}


def show_task(writes: JournalWrites, app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET tasks/{id}`. Raises ConsoleError."""
    found = find_task(app, request.parameters["id"])
    task, items = found.task, found.table.store.query(found.task.pk)
    runs = runs_of(app, task.pk)
    journals = read_run_journals(task, items, writes.of(task.pk))
    return {
        **_summary(found, runs),
        "result": _result(task, items),
        "error": task.error,
        "changedQuestions": changes_document(open_changed_questions(task.task_id, app.recorder)),
        "journal": journals.rows(runs[-1] if runs else None, runs),
        "runs": [_run(run, journals, runs) for run in runs],
    }


def find_task(app: LocalApp, task_id: str) -> FoundTask:
    """Return the task with this id. Raises ConsoleError (404)."""
    found = next((each for each in _all_tasks(app) if each.task.task_id == task_id), None)
    if found is None:
        raise ConsoleError(404, "there is no such task: it may have expired, or be of another run")
    return found


def _all_tasks(app: LocalApp) -> Iterator[FoundTask]:
    names = (app.settings(name).get(TABLE) for name in app.functions())
    for name in dict.fromkeys(name for name in names if name):
        table = EmulatedTable(app.emulator, name)
        heads = list(table.heads())
        calls = {str(item["pk"]): TaskCall.from_item(item) for item in heads if item["sk"] == CALL}
        for item in heads:
            if item["sk"] == TASK:
                yield FoundTask(table, Task.from_item(item), calls.get(str(item["pk"])))


def _summary(found: FoundTask, runs: list[WorkerRun]) -> dict[str, Any]:
    task, call = found.task, found.call
    running = next((run for run in reversed(runs) if run.is_running), None)
    return {
        "id": task.task_id,
        "tool": None if call is None else call.name,
        "arguments": {} if call is None else call.arguments,
        "dialect": task.dialect,
        "status": task.visible_status,
        "statusMessage": task.message,
        "workState": task.work_state.name.lower(),
        "worker": _worker_name(task.worker),
        "principal": _principal(call),
        "attempts": task.attempts,
        "leaseOwner": task.lease_owner,
        "leaseUntilMs": task.lease_until_ms,
        "wakeAtMs": task.wake_at_ms,
        "createdAtMs": task.created_at_ms,
        "updatedAtMs": task.updated_at_ms,
        "deadlineMs": task.deadline_ms,
        "questions": sorted(asked.key for asked in task.requests.values()),
        "runCount": len(runs),
        "environmentId": None if running is None else running.environment_id,
    }


def _run(run: WorkerRun, journals: RunJournals, runs: list[WorkerRun]) -> dict[str, Any]:
    return {**run.to_json(), "journal": journals.rows(run, runs)}


def _principal(call: TaskCall | None) -> dict[str, Any] | None:
    if call is None or call.principal is None:
        return None
    kind, subject, issuer, client_id = call.principal
    return {"kind": kind, "subject": subject, "issuer": issuer, "clientId": client_id}


def _worker_name(worker: str) -> str:
    """Return the name of a worker function or of its queue."""
    return function_name(worker) if worker.startswith("arn:") else worker.rpartition("/")[2]


def _result(task: Task, items: Sequence[Item]) -> Any:
    if not task.result_chunks:
        return task.result
    prefix = f"{RESULT}{task.result_owner}#"
    return join_result_chunks(item for item in items if str(item["sk"]).startswith(prefix))
