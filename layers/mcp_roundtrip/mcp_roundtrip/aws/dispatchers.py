"""Dispatch workers: invoke a Lambda function asynchronously, or send a message to the queue that invokes it.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.canonical import compact_json

MAX_DELAY_S: Final = 900
"""The longest delay of an SQS message. `wake_ups.wake` sends a message that arrives early again."""


class LambdaDispatcher(Struct, frozen=True):
    """Invokes functions; `worker` is an ARN with the version that created the task.

    Needs lambda:InvokeFunction. Lambda cannot delay an invocation.
    """

    client: AwsClient

    def dispatch(self, worker: str, pk: str) -> None:
        with _as_store_errors():
            try:
                self._invoke(worker, pk)
            except AwsError as error:
                if error.code != "ResourceNotFoundException":
                    raise
                # The version was deleted. The newest code runs the task, or fails it with Drift.
                self._invoke(_unqualified(worker), pk)

    def _invoke(self, function: str, pk: str) -> None:
        payload = compact_json({"task": pk}).encode()
        self.client.call("Invoke", FunctionName=function, InvocationType="Event", Payload=payload)


class SqsDispatcher(Struct, frozen=True):
    """Sends messages to standard queues; `worker` is the URL of a queue.

    Needs sqs:SendMessage, and sqs:ChangeMessageVisibility for `hide_message`.
    """

    client: AwsClient
    clock_ms: Callable[[], int]

    def dispatch(self, worker: str, pk: str) -> None:
        self._send(worker, {"task": pk}, delay_s=0)

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        delay_s = -(-max(at_ms - self.clock_ms(), 0) // 1000)
        self._send(worker, {"task": pk, "wake": at_ms}, delay_s=min(delay_s, MAX_DELAY_S))

    def _send(self, queue: str, message: Mapping[str, Any], *, delay_s: int) -> None:
        with _as_store_errors():
            body = compact_json({**message, "queue": queue})  # its worker hides it
            self.client.call("SendMessage", QueueUrl=queue, MessageBody=body, DelaySeconds=delay_s)

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        """Hide a received message from other consumers for so long from now on. Raises StoreError."""
        with _as_store_errors():
            self.client.call(
                "ChangeMessageVisibility",
                QueueUrl=queue,
                ReceiptHandle=receipt_handle,
                VisibilityTimeout=duration_s,
            )


class AwsDispatcher:
    """Dispatches each worker by its address: an ARN through Lambda, a URL through SQS.

    `queue` is the URL of the queue that wakes the sleeping tasks of a function. Without it, the next poll
    does.
    """

    def __init__(self, clients: AwsClients, clock_ms: Callable[[], int], queue: str | None = None) -> None:
        self._clients = clients
        self._clock_ms = clock_ms
        self._queue = queue

    def dispatch(self, worker: str, pk: str) -> None:
        dispatcher = self._lambda if _is_function(worker) else self._sqs
        dispatcher.dispatch(worker, pk)

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        queue = self._queue if _is_function(worker) else worker
        if queue is not None:
            self._sqs.dispatch_at(queue, pk, at_ms)

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        """Hide a message of a queue. Raises StoreError."""
        self._sqs.hide_message(queue, receipt_handle, duration_s)

    @cached_property
    def _lambda(self) -> LambdaDispatcher:
        return LambdaDispatcher(self._clients.client("lambda"))

    @cached_property
    def _sqs(self) -> SqsDispatcher:
        return SqsDispatcher(self._clients.client("sqs"), self._clock_ms)


def _is_function(worker: str) -> bool:
    return worker.startswith("arn:")


def _unqualified(arn: str) -> str:
    """Return arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME without the version that may follow."""
    return ":".join(arn.split(":")[:7])


@contextmanager
def _as_store_errors() -> Iterator[None]:
    try:
        yield
    except AwsError as error:
        raise StoreError(error.code) from error
