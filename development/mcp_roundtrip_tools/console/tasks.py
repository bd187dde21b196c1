"""The tasks in the tables of the running template, and the loss of their workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.aws.dynamodb import DynamoStore, from_attributes, to_attributes
from mcp_roundtrip.aws.services import AwsClient
from mcp_roundtrip.tasks.items import TaskCall, join_result_chunks
from mcp_roundtrip.tasks.model import CALL, RESULT, TASK, Task, WorkState
from mcp_roundtrip.tasks.store import Change, Equals, Item
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.worker_runs import journal_writes, run_journals, runs_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, members

TABLE: Final = "MCP_TASK_TABLE"

MAX_TASKS: Final = 200
"""The tasks that are listed, the newest first."""


_RUN: Final = ("environment_id", "is_new_environment", "trigger", "started_at_ms", "duration_ms", "error")


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task with its call, and its table."""

    store: DynamoStore
    task: Task
    call: TaskCall | None


def list_tasks(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET tasks`."""
    found = sorted(_all_tasks(app), key=lambda each: each.task.created_at_ms, reverse=True)[:MAX_TASKS]
    return {"tasks": [_summary(each, runs_of(app, each.task.pk)) for each in found]}


def show_task(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET tasks/{id}`. Raises ConsoleError."""
    found = find_task(app, request.parameters["id"])
    task, items = found.task, found.store.query(found.task.pk)
    runs = runs_of(app, task.pk)
    journals = run_journals(task, items, journal_writes(app, task.pk), runs)
    return {
        **_summary(found, runs),
        "result": _result(task, items),
        "error": task.error,
        "runs": [
            {**members(run, *_RUN), "journal": journal} for run, journal in zip(runs, journals, strict=True)
        ],
    }


def find_task(app: LocalApp, task_id: str) -> FoundTask:
    """Return the task with this id. Raises ConsoleError (404)."""
    found = next((each for each in _all_tasks(app) if each.task.task_id == task_id), None)
    if found is None:
        raise ConsoleError(404, "there is no such task: it may have expired, or be of another run")
    return found


def _all_tasks(app: LocalApp) -> Iterator[FoundTask]:
    """Yield the tasks of all tables; none while nothing has used DynamoDB: the console does not start it."""
    names = (app.settings(name).get(TABLE) for name in app.functions())
    for name in dict.fromkeys(name for name in names if name and app.emulator.is_running):
        heads = list(_heads(app.dynamodb, name))
        calls = {str(item["pk"]): TaskCall.from_item(item) for item in heads if item["sk"] == CALL}
        for item in heads:
            if item["sk"] == TASK:
                call = calls.get(str(item["pk"]))
                yield FoundTask(DynamoStore(app.dynamodb, name), Task.from_item(item), call)


def _heads(client: AwsClient, table: str) -> Iterator[Item]:
    """Yield the item M and the item A of each task: the task itself and its call."""
    request: dict[str, Any] = {
        "TableName": table,
        "FilterExpression": "sk = :task OR sk = :call",
        "ExpressionAttributeValues": to_attributes({":task": TASK, ":call": CALL}),
    }
    while True:
        page = client.call("Scan", **request)
        yield from map(from_attributes, page["Items"])
        if not page.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _summary(found: FoundTask, runs: list[RecordedInvocation]) -> dict[str, Any]:
    task, call = found.task, found.call
    times = ("lease_until_ms", "wake_at_ms", "created_at_ms", "updated_at_ms", "deadline_ms")
    running = [run.environment_id for run in runs if run.duration_ms is None]
    return {
        "id": task.task_id,
        "tool": None if call is None else call.name,
        "arguments": {} if call is None else call.arguments,
        "caller": None if call is None or call.principal is None else call.principal[1],
        "status": task.visible_status,
        "statusMessage": task.message,
        "workState": task.work_state.name.lower(),
        **members(task, *times),
        "runCount": len(runs),
        "environmentId": running[-1] if running else None,
    }


def _result(task: Task, items: Sequence[Item]) -> Any:
    if not task.result_chunks:
        return task.result
    prefix = f"{RESULT}{task.result_owner}#"
    return join_result_chunks(item for item in items if str(item["sk"]).startswith(prefix))


def expire_lease(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST tasks/{id}/expire-lease`: the next poll of the task dispatches a worker.

    A worker of which a process still runs keeps its lease. Raises ConsoleError.
    """
    found = find_task(app, request.parameters["id"])
    task = found.task
    if any(run.duration_ms is None for run in runs_of(app, task.pk)):
        raise ConsoleError(409, "a worker runs this task: kill its execution environment first")
    if task.work_state not in (WorkState.LEASED, WorkState.READY):
        raise ConsoleError(409, f"no worker was lost: the task is {task.work_state.name.lower()}")
    lease = {"lu": int(time.time() * 1000) - 1} if task.work_state is WorkState.LEASED else {}
    # Dispatched long ago, so that a poll does not pause before it dispatches again.
    change = Change(Equals("ver", task.version), set={**lease, "kick": 0})
    return {"expired": found.store.update(task.pk, TASK, change) is not None}


def kill_environment(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST environments/{id}/kill`: the process ends as if its computer were lost."""
    name = request.parameters["id"]
    if not app.environments.kill(name):
        raise ConsoleError(
            404, "no such execution environment runs, or it cannot be killed (make run DEBUG=1)"
        )
    app.recorder.note(f"console: {name} was killed")
    return {"killed": name}
