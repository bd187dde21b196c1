"""Dispatch workers: invoke a Lambda function asynchronously, or send a message to the queue that invokes it.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.aws.clients import AWS_ERRORS, error_reason, lambda_client, sqs_client
from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.internal_errors import StoreError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

MAX_DELAY_S: Final = 900
"""The longest delay of an SQS message. A worker that starts too early sends the message again."""


@dataclass(frozen=True, slots=True)
class LambdaDispatcher:
    """Invokes functions; `worker` is an ARN with the version that created the task.

    Needs lambda:InvokeFunction. Lambda cannot delay an invocation, so a dispatch with a delay does nothing,
    and the next poll dispatches the worker.
    """

    client: LambdaClient

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        if delay_ms:
            return
        with _as_store_errors():
            try:
                self._invoke(worker, pk)
            except self.client.exceptions.ResourceNotFoundException:
                # The version was deleted. The newest code runs the task, or fails it with Drift.
                self._invoke(_unqualified(worker), pk)

    def _invoke(self, function: str, pk: str) -> None:
        self.client.invoke(FunctionName=function, InvocationType="Event", Payload=_message(pk).encode())


@dataclass(frozen=True, slots=True)
class SqsDispatcher:
    """Sends messages to standard queues; `worker` is the URL of a queue. Needs sqs:SendMessage."""

    client: SQSClient

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        delay_s = min(-(-delay_ms // 1000), MAX_DELAY_S)
        with _as_store_errors():
            self.client.send_message(QueueUrl=worker, MessageBody=_message(pk), DelaySeconds=delay_s)


class AwsDispatcher:
    """Dispatches each worker by its address: an ARN through Lambda, a URL through SQS."""

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        dispatcher = self._lambda if worker.startswith("arn:") else self._sqs
        dispatcher.dispatch(worker, pk, delay_ms=delay_ms)

    @cached_property
    def _lambda(self) -> LambdaDispatcher:
        return LambdaDispatcher(lambda_client())

    @cached_property
    def _sqs(self) -> SqsDispatcher:
        return SqsDispatcher(sqs_client())


def _message(pk: str) -> str:
    """Return the event that `entry.worker` reads."""
    return compact_json({"task": pk})


def _unqualified(arn: str) -> str:
    """Return arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME without the version that may follow."""
    return ":".join(arn.split(":")[:7])


@contextmanager
def _as_store_errors() -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise StoreError(error_reason(error)) from error
