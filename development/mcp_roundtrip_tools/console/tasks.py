"""The tasks in the tables of the running template, their workers, and the loss of these."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.dynamodb import DynamoStore, from_attributes, to_attributes
from mcp_roundtrip.engine.journal import Fingerprint
from mcp_roundtrip.tasks.call_and_journal_items import (
    TaskCall,
    entry_from_item,
    is_in_journal,
    join_result_chunks,
)
from mcp_roundtrip.tasks.model import CALL, INPUT, RESULT, TASK, Task, WorkState
from mcp_roundtrip.tasks.parked_calls import PARKED
from mcp_roundtrip.tasks.store_interface import Change, Equals, Item
from mcp_roundtrip_tools.console.admission import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.states import entry_row, new_mark, question_row
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, members


def runs_of(app: LocalApp, pk: str) -> list[RecordedInvocation]:
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
    task: Task, items: Iterable[Item], writes: Mapping[str, JournalWrite], runs: Sequence[RecordedInvocation]
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


def _run_that_wrote(write: JournalWrite | None, runs: Sequence[RecordedInvocation]) -> int:
    """Return the position of the run that wrote an entry; -1 if it was there before all of them."""
    ids = [run.id for run in runs]
    return ids.index(write.invocation) if write is not None and write.invocation in ids else -1


def _run_after(write: JournalWrite | None, runs: Sequence[RecordedInvocation]) -> int:
    """Return the position of the first run that found a response; behind the last one if none has yet."""
    at_ms = 0.0 if write is None else write.at_ms
    return next((number for number, run in enumerate(runs) if run.started_at_ms >= at_ms), len(runs))


TABLE: Final = "MCP_TASK_TABLE"


_RUN: Final = ("environment_id", "is_new_environment", "trigger", "started_at_ms", "duration_ms", "error")


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task with its call, and its table."""

    store: DynamoStore
    task: Task
    call: TaskCall | None


def list_tasks(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET tasks`, the newest first."""
    found = sorted(_all_tasks(app), key=lambda each: each.task.created_at_ms, reverse=True)
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
    """Yield the tasks of all tables, without parked calls. The console does not start DynamoDB."""
    names = (app.settings(name).get(TABLE) for name in app.functions())
    for name in dict.fromkeys(name for name in names if name and app.emulator.is_running):
        heads = list(_heads(app.dynamodb, name))
        calls = {str(item["pk"]): TaskCall.from_item(item) for item in heads if item["sk"] == CALL}
        for task in (Task.from_item(item) for item in heads if item["sk"] == TASK):
            if task.dialect != PARKED:
                yield FoundTask(DynamoStore(app.dynamodb, name), task, calls.get(task.pk))


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
    """Answer `POST tasks/{id}/expire-lease`: the next poll replaces a lost worker. Raises ConsoleError."""
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
