"""A queue of SQS that triggers workers, or only wakes sleeping tasks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from mcp_roundtrip import Server
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.deployment import Deployment

VISIBILITY_S: Final = 930
MAX_DELAY_S: Final = 900
MAX_DELIVERIES: Final = 1_000


@dataclass(slots=True, eq=False)
class Message:
    """A message, which can be received from `visible_at` on (epoch seconds). Its id is its receipt handle."""

    id: str
    visible_at: float
    body: str


@dataclass(slots=True)
class WorkerQueue(RecordingDispatcher):
    """The messages of a queue, which delivers late, repeatedly, and at the right time.

    Without `triggers`, workers are invoked for dispatches, and the queue only has wake-ups.
    """

    clock: FakeClock = field(default_factory=FakeClock)
    triggers: bool = True
    messages: list[Message] = field(default_factory=list)
    deliveries: int = 0
    deployment: Any = None
    ids: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, server: Server, *, triggers: bool = True, **facets: Any) -> WorkerQueue:
        """Return the queue of a new deployment."""
        queue = cls(triggers=triggers)
        queue.deployment = Deployment(server, clock=queue.clock, dispatcher=queue, **facets)
        return queue

    # -- what a dispatcher does ---------------------------------------------------------------------------

    def dispatch(self, worker: str, pk: str) -> None:
        RecordingDispatcher.dispatch(self, worker, pk)
        if self.triggers and self.sent:
            self.sent.pop()
            self._send(self.clock(), {"task": pk, "queue": worker})

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        self._send(min(math.ceil(at_ms / 1000), self.clock() + MAX_DELAY_S), {"task": pk, "wake": at_ms})

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        assert queue == "worker:1"
        [message] = [message for message in self.messages if message.id == receipt_handle]
        message.visible_at = self.clock() + duration_s

    def _send(self, due: float, body: Mapping[str, Any]) -> None:
        self.messages.append(Message(f"message-{next(self.ids)}", due, json.dumps(body)))

    # -- what Lambda does ---------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Deliver the next message at its time."""
        message = min(self.messages, key=lambda message: message.visible_at)
        self.clock.advance(max(0.0, message.visible_at - self.clock()))
        self.receive(message)

    def receive(self, message: Message) -> None:
        """Receive a message, which is also possible while it is hidden: SQS delivers at least once."""
        self.deliveries += 1
        message.visible_at = self.clock() + VISIBILITY_S
        failed = deliver(self.deployment, message.body, message.id)
        if not failed and message in self.messages:
            self.messages.remove(message)

    def deliver_all(self) -> None:
        """Deliver and run workers until no message and no dispatch is left."""
        self.deployment.run_workers()
        while self.messages:
            assert self.deliveries < MAX_DELIVERIES, "workers dispatch each other endlessly"
            self.deliver()
            self.deployment.run_workers()


def deliver(deployment: Deployment, body: str, id_: str = "m", **members: Any) -> bool:
    """Deliver a message to a worker, and return whether it stays in the queue."""
    record = {"messageId": id_, "receiptHandle": id_, "body": body, **members}
    answer = deployment.work({"Records": [record]})
    assert answer["batchItemFailures"] in ([], [{"itemIdentifier": id_}])
    return bool(answer["batchItemFailures"])
