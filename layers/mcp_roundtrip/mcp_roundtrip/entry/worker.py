"""Handle an event of a worker function: an asynchronous invocation for one task, or messages of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.adapters.detect import UnknownEventSource
from mcp_roundtrip.deployment.needed_settings import log_missing_settings
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.deadline import lambda_remaining_ms, retries_until, worker_deadline_ms
from mcp_roundtrip.internal_errors import SettingsError, StoreError
from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip.server.auditing import with_audited_ends, work_with_audit
from mcp_roundtrip.server.endpoint import with_spans
from mcp_roundtrip.server.lambda_invocation import Invocation, invocation_id
from mcp_roundtrip.server.stored_call_passes import TaskRunner
from mcp_roundtrip.server.tools import ServerTools
from mcp_roundtrip.tasks.lease import MARGIN_MS, Delivery, LeaseHeld
from mcp_roundtrip.tasks.model import Task, task_id_in
from mcp_roundtrip.tasks.worker import Worker

MIN_REMAINING_MS: Final = 10_000
"""Remaining time of the invocation below which no further message of a batch is started."""

DEAD_LETTER_ATTRIBUTE: Final = "RequestID"
"""An attribute of the messages in which Lambda sends the events of invocations that it gave up.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""


def work(server_tools: ServerTools, event: Any, context: Any, ports: Ports) -> Any:
    """Work on the task that the event names, or on the tasks that the messages of a queue name.

    Raises StoreError, so that Lambda retries the invocation. For a queue it returns the messages to deliver
    again: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    Raises UnknownEventSource for an event without a task, such as a request.
    """
    correlation_id = invocation_id(context)
    if ports.audit is not None:
        ports = with_audited_ends(ports, correlation_id)
    invocation = WorkerInvocation(server_tools, ports, correlation_id, context)
    try:
        return _handle(invocation, event)
    finally:
        if ports.tracer is not None:
            ports.tracer.flush()


def _handle(invocation: WorkerInvocation, event: Any) -> Any:
    if "Records" not in event:
        invocation.begin()
        if "task" not in event:
            unknown = UnknownEventSource(
                "the event names no task, and a worker serves no requests; invoke the function with "
                "the lambda_handler"
            )
            invocation.ports.observer.record_failure("unknown_event_source", unknown)
            raise unknown
        try:
            return invocation.handle_task(str(event["task"]))
        except Exception as error:
            failure = "misconfigured" if isinstance(error, SettingsError) else "worker_failed"
            invocation.ports.observer.record_failure(failure, error)
            raise
    failed = [record["messageId"] for record in event["Records"] if not invocation.handle_message(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


class WorkerInvocation(Struct, frozen=True):
    server_tools: ServerTools
    ports: Ports
    correlation_id: str
    lambda_context: Any

    @property
    def lease_ms(self) -> int:
        return self.ports.settings.task_lease_s * 1000

    def begin(self) -> None:
        """Begin the lines of a task; at the first invocation, log the settings that are missing."""
        if self.ports.observer.begin(self.correlation_id):
            tools = [tool.name for tool in self.server_tools.tools.values() if tool.task]
            log_missing_settings({"work": tools}, self.ports)

    def handle_task(self, pk: str) -> None:
        """Work on the task of an asynchronous invocation. Raises StoreError.

        Lambda repeats an invocation that was lost, with the same request id, and may deliver one twice. While
        another one with this id has the lease, this one waits: if the lease is over then, its owner was lost.
        """
        request_id = getattr(self.lambda_context, "aws_request_id", None) or ""
        task = until_ms = None
        try:
            task = self._work(pk, request_id)
        except LeaseHeld as held:
            until_ms = held.until_ms
        if until_ms is not None:  # outside of the handler: a tool's exceptions have no LeaseHeld as context
            self.ports.pause_ms(min(max(until_ms + 1 - self._now_ms(), 0), self.lease_ms + MARGIN_MS))
            with suppress(LeaseHeld):  # renewed: its owner runs
                task = self._work(pk, request_id)
        self._record_end(task)

    def handle_message(self, record: Mapping[str, Any]) -> bool:
        """Work on the task of one message, or wake it; return False if the message has to be redelivered."""
        if lambda_remaining_ms(self.lambda_context) < MIN_REMAINING_MS:
            return False
        self.begin()
        log_fields = {"message_id": record["messageId"]}
        try:
            message = parse_json(record["body"])
            pk = str(message["task"])
            log_fields["task"] = task_id_in(pk)
            return self._handle_message(record, message, pk)
        except Exception as error:  # a failure of one message must not fail the others of the batch
            self.ports.observer.record_failure("queue_message_failed", error, **log_fields)
            return False

    def _handle_message(self, record: Mapping[str, Any], message: Mapping[str, Any], pk: str) -> bool:
        """Handle a message, which stays hidden for little longer than a lease, and again after each renewal.

        So it is soon delivered again if the worker is lost. Until their turn comes, the other messages of a
        batch keep the visibility timeout of their queue, which outlasts the invocation.
        """
        is_moved = _is_moved(record, message.get("queue"))
        hide = partial(self._hide, pk, None if is_moved else message.get("queue"), record["receiptHandle"])
        hide(self.lease_ms)
        if "wake" in message:
            self.ports.tasks().wake(pk, int(message["wake"]))
            return True
        if is_moved:  # the table knows the worker of the task
            return self.ports.tasks().redispatch(pk)
        try:
            task = self._work(pk, record["messageId"], partial(hide, self.lease_ms))
        except LeaseHeld as held:  # this message was delivered twice; deleting it would delete both
            hide(held.until_ms - self._now_ms())
            self._record_end(None)
            return False
        self._record_end(task)
        return True

    def _work(self, pk: str, delivery_id: str, on_renewed: Callable[[], None] | None = None) -> Task | None:
        remaining_ms = lambda_remaining_ms(self.lambda_context)
        deadline_ms = worker_deadline_ms(self.ports.clock_ms(), remaining_ms)
        invocation = with_spans(Invocation(self.correlation_id, deadline_ms, self.lambda_context), self.ports)
        delivery = Delivery(delivery_id, remaining_ms, self.lease_ms, on_renewed)
        run_worker = partial(self._run_worker, pk, delivery)
        if self.ports.audit is None:
            return run_worker(invocation)
        return work_with_audit(run_worker, self.ports, invocation)

    def _run_worker(self, pk: str, delivery: Delivery, invocation: Invocation) -> Task | None:
        ports, observer = self.ports, self.ports.observer
        observer.tag(task=task_id_in(pk))
        worker = Worker(
            ports.tasks(),
            TaskRunner(self.server_tools, ports, invocation),
            observer.record_failure,
            lambda: observer.record("lease_lost"),
            ports.wait_ms,
        )
        # A worker writes to its table until the invocation ends.
        with retries_until(ports.clock_ms() + delivery.remaining_ms):
            return worker.work(pk, delivery)

    def _hide(self, pk: str, queue: str | None, receipt_handle: str, lease_ms: int) -> None:
        """Hide a message until a lease is over. If that fails, it is hidden for as long as before."""
        if queue is None:  # it was moved here
            return
        try:
            duration_s = (lease_ms + MARGIN_MS) // 1000
            self.ports.tasks().dispatcher.hide_message(queue, receipt_handle, duration_s)
        except StoreError as error:
            self.ports.observer.record_failure("message_not_hidden", error, task=task_id_in(pk))

    def _record_end(self, task: Task | None) -> None:
        self.ports.observer.record("worker_finished" if task is not None else "task_not_claimed")

    def _now_ms(self) -> int:
        return int(self.ports.clock() * 1000)


def _is_moved(record: Mapping[str, Any], queue: str | None) -> bool:
    """Return whether an operator moved a message from the dead-letter queue to the queue of any worker."""
    if DEAD_LETTER_ATTRIBUTE in (record.get("messageAttributes") or {}):  # Lambda's messages name no queue
        return True
    arn = record.get("eventSourceARN")
    return bool(queue and arn) and str(queue).rpartition("/")[2] != str(arn).rpartition(":")[2]
