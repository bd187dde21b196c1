"""How a call is stored, as a task or as a parked call, and the errors of one that cannot be."""

from __future__ import annotations

from dataclasses import astuple
from typing import Final

from msgspec.structs import replace

from mcp_roundtrip.auth.principal import caller_binding
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, Refusal, StoreError
from mcp_roundtrip.protocol.canonical import canonical_json, compact_json
from mcp_roundtrip.protocol.jsonrpc import RETRY_AFTER_S, TOO_MANY_REQUESTS
from mcp_roundtrip.server.errors import ClientError
from mcp_roundtrip.server.model import FeatureCall
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.parked import ParkedCaller

_ANONYMOUS: Final = canonical_json(["anonymous"]).decode()
"""What stands for the principal of an anonymous caller in the identity of a call."""


def session_caller(call: FeatureCall) -> str | None:
    """Return a text that distinguishes the session of a call; None if it has none."""
    nonce = call.context.session_nonce
    return None if nonce is None else canonical_json(["session", nonce]).decode()


def parked_caller(call: FeatureCall) -> ParkedCaller:
    """Return the caller of a call.

    A call of an anonymous caller belongs to everyone who has its code, which is its random id, and knows its
    tool and arguments. Its session finds it without the code.
    """
    principal = caller_binding(call.context.principal)
    identity = replace(call.binding, principal=principal or _ANONYMOUS).identity()
    assert identity is not None
    if principal is not None:
        return ParkedCaller(principal, principal, identity)
    binding, code = canonical_json(["call", identity]).decode(), call.params.continuation_code
    return ParkedCaller(binding, None, identity, session_caller(call), code)


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


def require_room(call: FeatureCall, run: Run) -> None:
    """Raise ProtocolError if no task can be created for the call now, or if the table is not available."""
    principal, flow_id = caller_binding(call.context.principal), run.history.journal.flow_id
    try:
        call.context.ports.tasks().tasks.limit.check(Owner(principal, session_caller(call), flow_id))
    except TooManyOpenTasks as error:
        raise _too_many_open_tasks(call, run, error) from None
    except StoreError as error:
        raise call.context.table_unavailable(error) from error


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
        if call.takes_rounds:
            return ClientError(refused)
        # Many clients of earlier versions show no text of a JSON-RPC error, and a model reads no data.
        return ClientError(CallAborted(refused.message), "too_many_open_tasks", refused.reason)
    return ClientError(call.context.table_unavailable(error))


def _too_many_open_tasks(call: FeatureCall, run: Run, error: TooManyOpenTasks) -> Refusal:
    """Log the limit, and return the error with HTTP status 429. It names the steps that have run in vain."""
    call.context.ports.observer.record("task_limit_reached", **call.log_identity, limit=error.limit)
    is_stored = run.tasks.recorder is not None  # a parked call keeps its steps
    again = "make this call again" if call.params.request_state is None else "send this request again"
    text = (
        f"The caller has as many open tasks and waiting calls as the server allows: {error.limit}. "
        f"Wait until one of them has ended, answer one, or cancel a task with tasks/cancel, and {again}."
    )
    if not is_stored and (lost := run.lost_effects()):
        text += f" These steps have run, and will run again then: {', '.join(lost)}."
    data = {"maxOpenTasks": error.limit, "retryAfterMs": 1_000 * RETRY_AFTER_S}
    return Refusal("task_limit_reached", TOO_MANY_REQUESTS, text, data, http_status=429)
