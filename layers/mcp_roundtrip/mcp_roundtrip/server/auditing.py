"""Audit the requests of an endpoint and the passes of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.ports import Observer, Ports
from mcp_roundtrip.server.audited_operation import TAGGED, AuditedOperation
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.tasks.model import Task


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


def _attach(operation: AuditedOperation, ports: Ports, invocation: Invocation) -> tuple[Ports, Invocation]:
    """Return ports and an invocation that report to the operation."""
    observer = AuditedObserver(ports.observer, operation.observe)
    return replace(ports, observer=observer), replace(invocation, operation=operation)


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
