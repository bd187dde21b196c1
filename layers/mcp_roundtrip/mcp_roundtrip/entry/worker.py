"""Handle an event of a worker function: an asynchronous invocation for one task, or messages of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.deadline import lambda_remaining_ms, worker_deadline_ms
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.server.invocation import Invocation, invocation_id
from mcp_roundtrip.server.task_runner import TaskRunner
from mcp_roundtrip.server.tools import ToolMethods
from mcp_roundtrip.tasks.worker import Worker

LEASE_MARGIN_MS: Final = 5_000
"""How much longer the lease lasts than the invocation: clocks differ."""

MIN_REMAINING_MS: Final = 10_000
"""Remaining time of the invocation below which no further message of a batch is started."""


def work(tool_methods: ToolMethods, event: Any, context: Any, make_ports: Callable[[], Ports]) -> Any:
    """Work on the task that the event names, or on the tasks that the messages of a queue name.

    Raises StoreError, so that Lambda retries the invocation. For a queue it returns the messages to deliver
    again: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    ports, correlation_id = make_ports(), invocation_id(context)
    invocation = WorkerInvocation(tool_methods, ports, correlation_id, context)
    if "Records" not in event:
        ports.observer.begin(correlation_id)
        try:
            return invocation.work(str(event["task"]))
        except Exception as error:
            failure = "misconfigured" if isinstance(error, SettingsError) else "worker_failed"
            ports.observer.record_failure(failure, error, task=str(event["task"]).partition("#")[2])
            raise
    failed = [record["messageId"] for record in event["Records"] if not invocation.handle_message(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


class WorkerInvocation(Struct, frozen=True):
    """One invocation of a worker function."""

    tool_methods: ToolMethods
    ports: Ports
    correlation_id: str
    context: Any

    def work(self, pk: str) -> None:
        """Work on the task with this partition key. Raises StoreError."""
        ports, port, task_id = self.ports, self.ports.tasks(), pk.partition("#")[2]
        remaining_ms = lambda_remaining_ms(self.context)
        deadline_ms = worker_deadline_ms(ports.clock_ms(), remaining_ms)
        invocation = Invocation(self.correlation_id, deadline_ms, self.context)
        worker = Worker(
            port.store,
            port.dispatcher,
            TaskRunner(self.tool_methods, ports, invocation),
            lambda: int(ports.clock() * 1000),
            lambda: ports.random_bytes(12).hex(),
            lambda event, error: ports.observer.record_failure(event, error, task=task_id),
            lambda abandoned: ports.observer.record("task_abandoned", task=abandoned),
        )
        task = worker.work(pk, remaining_ms + LEASE_MARGIN_MS)
        ports.observer.record("worker_finished" if task is not None else "task_not_claimed", task=task_id)

    def handle_message(self, record: Mapping[str, Any]) -> bool:
        """Work on the task of one message, or wake it; return False if the message has to be redelivered."""
        if lambda_remaining_ms(self.context) < MIN_REMAINING_MS:
            return False
        self.ports.observer.begin(self.correlation_id)
        try:
            message = parse_json(record["body"])
            if "wake" in message:
                self.ports.tasks().tasks.wake(str(message["task"]), int(message["wake"]))
            else:
                self.work(str(message["task"]))
        except Exception as error:  # a failure of one message must not fail the others of the batch
            self.ports.observer.record_failure("queue_message_failed", error, message_id=record["messageId"])
            return False
        return True
