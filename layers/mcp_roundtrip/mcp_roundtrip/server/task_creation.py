"""How a call becomes a task."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.errors import ToolError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.server.errors import ClientError
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.server.reserved_place import too_many_open_tasks
from mcp_roundtrip.server.task_methods import task_members, task_table_unavailable
from mcp_roundtrip.tasks.call_index import Flow
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.model import Task


def create_task(
    call: FeatureCall, journal: Journal, ttl_ms: int, flow: Flow | None, parked: Task | None = None
) -> dict[str, Any] | ClientError:
    """Store a task that continues the call, and return the members of its Task object.

    `flow` is the flow of which the client has a state. It becomes one task, also if rounds are sent again.
    `parked` is the parked call that becomes the task. It becomes one task, also after a crash.
    """
    try:
        return task_members(_store_task(call, journal, ttl_ms, flow, parked).as_created)
    except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
        return creation_error(call, error)


def creation_error(call: FeatureCall, error: ItemTooLarge | TooManyOpenTasks | StoreError) -> ClientError:
    """Return the error of a call that could not be stored, and log it."""
    observer = call.context.ports.observer
    if isinstance(error, ItemTooLarge):
        observer.record_failure("task_too_large", error, tool=call.feature.name)
        if len(compact_json(call.params.arguments)) < error.size // 2:
            return ClientError(call.context.internal_error)
        text = f"The arguments are too large for a task: at most about {error.limit} bytes of JSON."
        return ClientError(ToolError(text), "arguments_too_large")
    if isinstance(error, TooManyOpenTasks):
        return ClientError(too_many_open_tasks(call, error))
    return ClientError(task_table_unavailable(error, call.context))


def _store_task(
    call: FeatureCall, journal: Journal, ttl_ms: int, flow: Flow | None, parked: Task | None
) -> Task:
    if (tracer := call.context.ports.tracer) is None:
        return _create(call, journal, ttl_ms, flow, parked)
    from mcp_roundtrip.server.pass_span import creation_span  # off by default

    with creation_span(tracer, call, journal) as span:
        task = _create(call, journal, ttl_ms, flow, parked, span.traceparent)
        span.set_attribute("mcp_roundtrip.task.id", task.task_id)
        return task


def _create(
    call: FeatureCall,
    journal: Journal,
    ttl_ms: int,
    flow: Flow | None,
    parked: Task | None,
    created_in: str | None = None,
) -> Task:
    port = call.context.ports.tasks()
    return port.tasks.create(
        task_call_of(call),
        caller_binding(call.context.principal),
        journal,
        worker=port.worker(),
        capabilities=call.context.request.meta.capabilities,
        ttl_ms=ttl_ms,
        flow=flow,
        continued=parked,
        created_in=created_in,
        place=call.reservation.place,
    )


def task_call_of(call: FeatureCall) -> TaskCall:
    """Return the part of a call that its task stores."""
    meta, principal = call.context.request.meta, call.context.principal
    return TaskCall(
        call.context.request.method,
        call.feature.name,
        call.params.arguments,
        None if principal is None else astuple(principal),
        meta.info,
        call.server_info,
        meta.trace,
    )
