"""How a call becomes a task."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol.jsonrpc import RETRY_AFTER_S, TOO_MANY_REQUESTS
from mcp_roundtrip.server.errors import ClientError
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.server.parked_caller import session_caller
from mcp_roundtrip.server.task_methods import task_members, task_table_unavailable
from mcp_roundtrip.tasks.call_index import Flow
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.model import Task


def create_task(
    call: FeatureCall,
    run: Run,
    journal: Journal,
    ttl_ms: int,
    flow: Flow | None,
    parked: Task | None = None,
) -> dict[str, Any] | ClientError:
    """Store a task that continues the call, and return the members of its Task object.

    `run` is the pass that has ended. `flow` is the flow of which the client has a state. It becomes one task,
    also if rounds are sent again. `parked` is the parked call that becomes the task, also after a crash.
    """
    try:
        return task_members(_store_task(call, journal, ttl_ms, flow, parked).as_created)
    except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
        return creation_error(call, run, error)


def require_room(call: FeatureCall, run: Run) -> None:
    """Raise ProtocolError if no task can be created for the call now, or if the table is not available."""
    tasks, flow_id = call.context.ports.tasks().tasks, run.history.journal.flow_id
    try:
        tasks.limit.check(Owner(caller_binding(call.context.principal), session_caller(call) or flow_id))
    except TooManyOpenTasks as error:
        raise _too_many_open_tasks(call, run, error) from None
    except StoreError as error:
        raise task_table_unavailable(error, call.context) from error


def creation_error(
    call: FeatureCall, run: Run, error: ItemTooLarge | TooManyOpenTasks | StoreError
) -> ClientError:
    """Return the error of a call that could not be stored after a pass, and log it."""
    observer = call.context.ports.observer
    if isinstance(error, ItemTooLarge):
        observer.record_failure("task_too_large", error, tool=call.feature.name)
        if len(compact_json(call.params.arguments)) < error.size // 2:
            return ClientError(call.context.internal_error)
        text = f"The arguments are too large for a task: at most about {error.limit} bytes of JSON."
        return ClientError(ToolError(text), "arguments_too_large")
    if isinstance(error, TooManyOpenTasks):
        refused = _too_many_open_tasks(call, run, error)
        if call.follows_state:
            return ClientError(refused)
        # Many clients of earlier versions show no text of a JSON-RPC error, and a model reads no data.
        return ClientError(CallAborted(refused.message), "too_many_open_tasks")
    return ClientError(task_table_unavailable(error, call.context))


def _too_many_open_tasks(call: FeatureCall, run: Run, error: TooManyOpenTasks) -> ProtocolError:
    """Log the limit, and return the error with HTTP status 429. It names the steps that have run in vain."""
    call.context.ports.observer.record("task_limit_reached", **call.log_identity, limit=error.limit)
    again = "call again" if call.params.request_state is None else "send this request again"
    text = (
        f"The caller has as many open tasks and waiting calls as the server allows: {error.limit}. "
        f"Wait until one of them has ended, answer one, or cancel a task with tasks/cancel, and {again}."
    )
    if lost := run.lost_effects():
        text += f" These steps have run, and will run again then: {', '.join(lost)}."
    data = {"maxOpenTasks": error.limit, "retryAfterMs": 1_000 * RETRY_AFTER_S}
    return ProtocolError(TOO_MANY_REQUESTS, text, data, http_status=429)


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
        caller=session_caller(call),
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
