"""Audit the requests of an endpoint, the passes of workers, and the ends of tasks that no worker ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import ANONYMOUS, InsufficientScope, IssuerUnavailable, Unauthorized
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.deployment.ports import Ports, TaskPort
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.constants import FEATURE_KINDS
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.protocol.request_validation import ValidRequest, validate_request
from mcp_roundtrip.server.audited_operation import AuditedOperation
from mcp_roundtrip.server.invocation import Invocation, Operation
from mcp_roundtrip.server.model import RequestContext
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.responses import log_fault
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import CALL, Task
from mcp_roundtrip.tasks.watchdog import EndReason

TIME_TO_AUTHENTICATE_MS: Final = 10_000
"""The time that has to be left to authenticate the caller of a request that could not be forwarded."""

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
    """Run a pass of a worker, and record its operation. Raises as `work`."""
    operation = AuditedOperation(ports, invocation.correlation_id, is_worker=True)
    audited = with_audited_ends(ports, invocation.correlation_id)
    try:
        task = work(audited, replace(invocation, operation=operation))
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


def describe_unread_request(
    operation: Operation,
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
    options: ServerOptions,
    find_feature: Callable[[RequestContext], object],
) -> None:
    """Note who calls what with a valid request that was forwarded unread, and had no response.

    `find_feature` finds the feature of a call. The record has no principal if the token is invalid, or if too
    little time is left to fetch the keys of its issuer.
    """
    config = ports.config
    body = request.body or b""
    try:
        if not body_within_limit(body, config.max_body_bytes):
            return
        checked = validate_request(
            request.headers, body, serves_legacy=True, max_values=config.max_json_values
        )
        if not isinstance(checked, ValidRequest):
            return
        caller = ANONYMOUS
        has_time = invocation.deadline_ms - ports.clock_ms() > TIME_TO_AUTHENTICATE_MS
        if has_time or isinstance(config.authenticator, EventAuthenticator):  # which fetches no keys
            with suppress(Unauthorized, IssuerUnavailable):
                caller = config.authenticator.authenticate(request.headers, request.authorizer)
        context = RequestContext(checked, caller.principal, ports, invocation, options, None, caller.scopes)
        operation.note_request(context, is_admitted=False)
        if checked.method in FEATURE_KINDS:
            with suppress(ProtocolError, InsufficientScope):
                find_feature(context)
    except Exception as error:  # the response does not depend on the record
        log_fault(ports.observer, error)
