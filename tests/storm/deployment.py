"""The worker function of one task, with Lambda's retries and its queue.

These and the processes' runtime API are those of the local runner (`mcp_roundtrip_tools.run`). The workers
are processes under AWS's runtime client.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.execution.pools import Pool
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.template.model import Function, Queue
from storm.processes import TIMEOUT_S
from storm.virtual_time import VirtualTime

FUNCTION = Function("Worker", "", Path("/"), (), {}, TIMEOUT_S, 1024)
QUEUE = Queue("Tasks", "Worker", visibility_timeout_s=930, max_receives=12)


class Delivery(StrEnum):
    """How workers are dispatched: the parameter TaskDelivery of the template."""

    INVOKE = "invoke"
    QUEUE = "queue"


class Deployment:
    """Dispatches workers (see `mcp_roundtrip.tasks.watchdog`) to environments that `launch` starts.

    Each dispatch is delivered `deliveries` times at the same time.
    """

    def __init__(
        self,
        delivery: Delivery,
        deliveries: int,
        time: VirtualTime,
        launch: Callable[[], Any],
    ) -> None:
        self._delivery = delivery
        self._deliveries = deliveries
        self._time = time
        self._pool = Pool(launch)
        self._queues = Queues(lambda: {QUEUE.name: QUEUE}, self._run, _ignore, time)
        self._invocations = AsyncInvocations(
            lambda: {FUNCTION.name: FUNCTION}, self._run, lambda arn, body: True, time, _ignore
        )
        self._last: InvokeRequest

    def close(self) -> None:
        self._pool.close()

    def dispatch(self, worker: str, pk: str) -> None:
        if self._delivery is Delivery.INVOKE:
            accepted = InvokeRequest(FUNCTION.name, json.dumps({"task": pk}).encode())
            now_s = self._time.now_s()
            for _ in range(self._deliveries):
                self._invocations.deliver(accepted, now_s)
        else:
            self.sqs("SendMessage", MessageBody=json.dumps({"task": pk, "queue": QUEUE.name}))

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        delay_s = min(-(-max(at_ms - self._time.now_ms(), 0) // 1000), 900)
        body = json.dumps({"task": pk, "queue": QUEUE.name, "wake": at_ms})
        self.sqs("SendMessage", MessageBody=body, DelaySeconds=delay_s)

    def sqs(self, operation: str, **parameters: Any) -> None:
        body = json.dumps({"QueueUrl": f"/{QUEUE.name}", **parameters}).encode()
        response = self._queues.respond(
            Request("POST", "/", (("x-amz-target", f"AmazonSQS.{operation}"),), body)
        )
        if response.status != 200:
            raise StoreError(json.loads(response.body)["__type"])

    def deliver_again(self) -> None:
        """Deliver the last invocation or message once more, while it is processed."""
        if self._delivery is Delivery.QUEUE:
            [record] = json.loads(self._last.payload)["Records"]
            self.sqs("ChangeMessageVisibility", ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0)
        else:
            self._invocations.deliver(self._last, self._time.now_s())

    def _run(self, invocation: InvokeRequest) -> InvocationResult:
        self._last = invocation
        return self._pool.invoke(invocation)


def _ignore(line: str) -> None:
    """Write no log: a storm has thousands of lines."""
