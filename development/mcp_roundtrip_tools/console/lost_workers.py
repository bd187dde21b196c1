"""Replace a lost worker without waiting: the time of its lease is over now."""

from __future__ import annotations

import time
from typing import Any

from mcp_roundtrip.tasks.model import TASK, WorkState
from mcp_roundtrip.tasks.store import Change, Equals
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.task_runs import runs_of
from mcp_roundtrip_tools.console.tasks import find_task
from mcp_roundtrip_tools.run.app import LocalApp


def expire_lease(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST tasks/{id}/expire-lease`: the next poll of the task dispatches a worker.

    A worker of which a process still runs keeps its lease. Raises ConsoleError.
    """
    found = find_task(app, request.parameters["id"])
    task = found.task
    if any(run.is_running for run in runs_of(app, task.pk)):
        raise ConsoleError(409, "a worker runs this task: kill its execution environment first")
    if task.work_state not in (WorkState.LEASED, WorkState.READY):
        raise ConsoleError(409, f"no worker was lost: the task is {task.work_state.name.lower()}")
    lease = {"lu": int(time.time() * 1000) - 1} if task.work_state is WorkState.LEASED else {}
    # Dispatched long ago, so that a poll does not pause before it dispatches again.
    change = Change(Equals("ver", task.version), set={**lease, "kick": 0})
    return {"expired": found.table.store.update(task.pk, TASK, change) is not None}
