"""Audit the requests of an endpoint, the passes of workers, and the ends of tasks that no worker ends."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Ports, TaskPort
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.audited_operation import AuditedOperation
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import CALL, Task
from mcp_roundtrip.tasks.watchdog import EndReason

TASK_END: Final = "task_end"
"""The `method` of the end of a task that no worker ends."""

SUPERSEDED: Final = "superseded"
"""Its outcome if the task ended otherwise meanwhile, or a worker has taken it."""


def respond_with_audit(
    respond: Callable[[HttpRequest, Ports, Invocation], HttpResponse],
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
) -> HttpResponse:
    """Respond to a request, and record its operation."""
    operation = AuditedOperation(ports, invocation.correlation_id)
    audited = with_audited_ends(ports, invocation.correlation_id)
    response = respond(request, audited, replace(invocation, operation=operation))
    if response.end is not None:
        operation.end_request(response.end)
    return response


def work_with_audit(
    work: Callable[[Ports, Invocation], Task | None], ports: Ports, invocation: Invocation
) -> Task | None:
    """Run a pass of a worker, and record its operation. Raises as `work`. `ports`: of `with_audited_ends`."""
    operation = AuditedOperation(ports, invocation.correlation_id, worker=True)
    try:
        task = work(ports, replace(invocation, operation=operation))
    except Exception as error:
        operation.end_pass(error)
        raise
    operation.end_pass(task)
    return task


def with_audited_ends(ports: Ports, correlation_id: str) -> Ports:
    """Return ports that record the end of each task that no worker ends (see `tasks.watchdog.OnEnding`).

    The process that notices the end writes the record: a poll, a wake-up or a worker. All processes that
    notice it at the same time write the same record id and outcome. If the `begun` line cannot be stored, the
    task does not end then. `correlation_id` is that of the invocation.
    """

    def begin(task: Task, reason: EndReason) -> Callable[[bool], None]:
        item = ports.tasks().tasks.store.get(task.pk, CALL)
        # A task that a worker took, and was not abandoned, may be abandoned later. A task expires once.
        version = task.version if reason == "abandoned" else 0
        named = f"mcp-rs/v1/audit-task-end:{task.pk}:{reason}:{version}"
        record = sha256(named.encode()).hexdigest()[:32]
        operation = AuditedOperation(ports, correlation_id, record=record, method=TASK_END)
        operation.begin_task(task, None if item is None else TaskCall.from_item(item))
        return lambda has_ended: operation.end(outcome=reason if has_ended else SUPERSEDED)

    def tasks() -> TaskPort:
        port = ports.tasks()
        return replace(port, tasks=replace(port.tasks, on_ending=begin))

    return replace(ports, tasks=tasks)
