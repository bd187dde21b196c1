"""Audit the requests of an endpoint and the passes of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import ANONYMOUS, InsufficientScope, IssuerUnavailable, Unauthorized
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.deployment.ports import Observer, Ports, TaskPort
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.constants import FEATURE_KINDS
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.protocol.request_validation import ValidRequest, validate_request
from mcp_roundtrip.server.audit_vocabulary import TAGGED
from mcp_roundtrip.server.audited_operation import AuditedOperation
from mcp_roundtrip.server.invocation import Invocation, Operation
from mcp_roundtrip.server.model import RequestContext
from mcp_roundtrip.server.responses import log_fault
from mcp_roundtrip.tasks.model import Task

if TYPE_CHECKING:
    from mcp_roundtrip.tasks.endings import EndReason


TIME_TO_AUTHENTICATE_MS: Final = 10_000
"""The time that has to be left to authenticate the caller of a request that could not be forwarded."""


class AuditedObserver:
    """Reports each event to an operation, and everything to the observer of the deployment."""

    def __init__(self, observer: Observer, observe: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._observer = observer
        self._observe = observe
        self.begin = observer.begin
        self.redact = observer.redact
        self.count_aws_call = observer.count_aws_call
        self.on_exception = observer.on_exception

    def tag(self, **fields: Any) -> None:
        self._observe(TAGGED, fields)
        self._observer.tag(**fields)

    def record(self, event: str, **fields: Any) -> None:
        self._observe(event, fields)
        self._observer.record(event, **fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        self._observe(event, fields)
        self._observer.record_failure(event, error, **fields)


def with_audited_ends(ports: Ports, correlation_id: str) -> Ports:
    """Return ports that record the end of each task that no worker ends.

    `correlation_id` is that of the invocation.
    """

    def begin(task: Task, reason: EndReason) -> Callable[[bool], None]:
        from mcp_roundtrip.server.audited_task_end import begin_task_end  # few tasks end like this

        return begin_task_end(ports, correlation_id, task, reason)

    def tasks() -> TaskPort:
        port = ports.tasks()
        return replace(port, tasks=replace(port.tasks, on_ending=begin))

    return replace(ports, tasks=tasks)


def describe_unread_request(
    operation: Operation,
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
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
        context = RequestContext(checked, caller.principal, ports, invocation, None, caller.scopes)
        operation.note(context)
        if checked.method in FEATURE_KINDS:
            with suppress(ProtocolError, InsufficientScope):
                find_feature(context)
    except Exception as error:  # the response does not depend on the record
        log_fault(ports.observer, error)


def _attach(operation: AuditedOperation, ports: Ports, invocation: Invocation) -> tuple[Ports, Invocation]:
    """Return ports and an invocation that report to the operation."""
    observer = AuditedObserver(ports.observer, operation.observe)
    audited = with_audited_ends(replace(ports, observer=observer), invocation.correlation_id)
    return audited, replace(invocation, operation=operation)


def respond_with_audit(
    respond: Callable[[HttpRequest, Ports, Invocation], HttpResponse],
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
) -> HttpResponse:
    """Respond to a request, and record its operation."""
    assert ports.audit is not None
    operation = AuditedOperation(ports.audit, ports, invocation.correlation_id)
    response = respond(request, *_attach(operation, ports, invocation))
    operation.end()
    return response


def work_with_audit(
    work: Callable[[Ports, Invocation], Task | None], ports: Ports, invocation: Invocation
) -> Task | None:
    """Run a pass of a worker, and record its operation. Raises as `work`."""
    assert ports.audit is not None
    operation = AuditedOperation(ports.audit, ports, invocation.correlation_id, is_worker=True)
    try:
        task = work(*_attach(operation, ports, invocation))
    except Exception as error:
        operation.end_pass(None, error)
        raise
    operation.end_pass(task)
    return task
