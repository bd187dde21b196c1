"""The Lambda handler of a worker: an asynchronous invocation for one task, or messages of a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.deadline import lambda_remaining_ms, worker_deadline_ms
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.server.invocation import Invocation, invocation_id
from mcp_roundtrip.server.task_methods import TaskBody
from mcp_roundtrip.server.tools import ToolServer
from mcp_roundtrip.tasks.worker import Worker

LEASE_MARGIN_MS: Final = 5_000
"""How much longer than its invocation a worker keeps its lease: clocks differ."""

LEFT_OVER_MS: Final = 10_000
"""With less, which is what the messages before it left over, no message of a batch is begun."""


def work(server: ToolServer, event: Any, context: Any, make_ports: Callable[[], Ports]) -> Any:
    """Work on the task that the event names, or on those that messages of a queue name.

    Raises StoreError, so that the delivery is tried again. For a queue it returns instead which of the
    messages are to be delivered again: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    ports, correlation_id = make_ports(), invocation_id(context)
    shift = Shift(server, ports, correlation_id, context)
    if "Records" not in event:
        ports.observer.begin(correlation_id)
        try:
            return shift.work(str(event["task"]))
        except Exception as error:
            what = "misconfigured" if isinstance(error, SettingsError) else "worker_failed"
            ports.observer.failure(what, error, task=str(event["task"]).partition("#")[2])
            raise
    failed = [record["messageId"] for record in event["Records"] if not shift.delivered(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


@dataclass(frozen=True, slots=True)
class Shift:
    """One invocation of a worker."""

    server: ToolServer
    ports: Ports
    correlation_id: str
    context: Any

    def work(self, pk: str) -> None:
        """Work on one task. Raises StoreError."""
        ports, port, task_id = self.ports, self.ports.tasks(), pk.partition("#")[2]
        remaining_ms = lambda_remaining_ms(self.context)
        deadline_ms = worker_deadline_ms(ports.clock_ms(), remaining_ms)
        invocation = Invocation(self.correlation_id, deadline_ms, self.context)
        worker = Worker(
            port.store,
            port.dispatcher,
            TaskBody(self.server, ports, invocation),
            lambda: int(ports.clock() * 1000),
            lambda: ports.random_bytes(12).hex(),
            lambda event, error: ports.observer.failure(event, error, task=task_id),
            lambda task_id: ports.observer.record("task_abandoned", task=task_id),
        )
        worked = worker.work(pk, remaining_ms + LEASE_MARGIN_MS)
        ports.observer.record("worker_finished" if worked else "task_not_claimed", task=task_id)

    def delivered(self, record: Mapping[str, Any]) -> bool:
        """Work on the task of one message; False if the message is to come again."""
        if lambda_remaining_ms(self.context) < LEFT_OVER_MS:
            return False
        self.ports.observer.begin(self.correlation_id)
        try:
            message = parse_json(record["body"])
            self.work(str(message["task"]))
        except Exception as error:  # one message's: the others of the batch are nothing to it
            self.ports.observer.failure("queue_message_failed", error, message_id=record["messageId"])
            return False
        return True
