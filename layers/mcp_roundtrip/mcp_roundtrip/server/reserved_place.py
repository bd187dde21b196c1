"""Reserve a place among the open tasks of a caller, for a call that has not become a task or been parked yet.

No refusal above the limit loses a step, also while calls run concurrently:

- A call that is certain to need a place reserves it before it runs.
- A call that may have to wait for an answer reserves one before its first step, if its client could not keep
  the step.
- Another call that turns out to need one, and finds none after a step, returns its state. Its next round
  reserves a place before it runs.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress

from mcp_roundtrip.deadline import lambda_remaining_ms
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol.jsonrpc import RETRY_AFTER_S, TOO_MANY_REQUESTS
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.server.task_methods import task_table_unavailable
from mcp_roundtrip.server.unaskable import lost_effects
from mcp_roundtrip.tasks.limit import TooManyOpenTasks


def reserve_place(call: FeatureCall) -> None:
    """Reserve a place for a call that has none. Raises TooManyOpenTasks and StoreError.

    It lapses when the invocation is over, because a lost process cannot release it.
    """
    if call.reservation.place is not None:
        return
    context = call.context
    ports, tasks = context.ports, context.ports.tasks().tasks
    remaining_ms = context.invocation.deadline_ms - ports.clock_ms()
    if (lambda_context := context.invocation.lambda_context) is not None:
        remaining_ms = max(remaining_ms, lambda_remaining_ms(lambda_context))
    principal, lapses_at_ms = caller_binding(context.principal), tasks.clock_ms() + max(0, int(remaining_ms))
    name = call.reservation.name or urlsafe_b64encode(ports.random_bytes(9)).decode()
    call.reservation.place = tasks.limit.reserve(principal, lapses_at_ms, name)


def reserve_place_or_refuse(call: FeatureCall) -> None:
    """Reserve a place for a call that has none. Raises ProtocolError if there is none, or no table."""
    try:
        reserve_place(call)
    except TooManyOpenTasks as error:
        call.reservation.refused_above = error.limit
        raise too_many_open_tasks(call, error) from None
    except StoreError as error:
        raise task_table_unavailable(error, call.context) from error


def has_run_steps(call: FeatureCall, journal: Journal) -> bool:
    """Return whether a refusal would lose steps: those of earlier rounds, or one that this request has begun.

    A step that failed has no entry.
    """
    return call.reservation.has_admitted_step or lost_effects(journal) != []


def can_reserve_place(call: FeatureCall) -> bool:
    """Try to reserve a place for a call, and return whether it has one. A failure is logged."""
    if call.reservation.is_unavailable:
        return False
    try:
        reserve_place(call)
    except TooManyOpenTasks as error:
        observer = call.context.ports.observer
        observer.record("task_postponed", **call.log_identity, limit=error.limit)
    except StoreError as error:
        task_table_unavailable(error, call.context)
    else:
        return True
    call.reservation.is_unavailable = True
    return False


def release_place(call: FeatureCall) -> None:
    """Release the call's own place, unless its task has taken it."""
    place, context = call.reservation.place, call.context
    if place is None or place.is_taken or place.is_shared:
        return
    with suppress(StoreError):  # it lapses
        context.ports.tasks().tasks.limit.release(caller_binding(context.principal), place)


def too_many_open_tasks(call: FeatureCall, error: TooManyOpenTasks) -> ProtocolError:
    """Log the limit, and return the error with HTTP status 429."""
    call.context.ports.observer.record("task_limit_reached", **call.log_identity, limit=error.limit)
    tasks = "task" if error.limit == 1 else "tasks"
    again = "call again" if call.params.request_state is None else "send this request again"
    text = (
        f"The caller has {error.limit} open {tasks}, and the server allows no more; calls that wait for an "
        "answer count, too. Wait until one of them has ended, or cancel a task with tasks/cancel, and "
        f"{again}."
    )
    return ProtocolError(
        TOO_MANY_REQUESTS,
        text,
        {"maxOpenTasks": error.limit, "retryAfterMs": 1_000 * RETRY_AFTER_S},
        http_status=429,
    )
