"""Sends for workers: asynchronous invocations of a Lambda function, or messages to the queue it reads.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import boto3

from mcp_roundtrip.aws.calls import AWS_ERRORS, client_config, error_reason
from mcp_roundtrip.canonical import compact
from mcp_roundtrip.errors import StoreError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

MAX_DELAY_S: Final = 900
"""How long SQS keeps a message back at most; a worker that comes before its time sends it on again."""


@dataclass(frozen=True, slots=True)
class LambdaDispatcher:
    """Invokes functions: `worker` is an ARN, with the version that created the task.

    Needs lambda:InvokeFunction on them. Lambda cannot wait, so a kick with a delay is left to the polls.
    """

    client: LambdaClient

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        if delay_ms:
            return
        with _store_errors():
            try:
                self._invoke(worker, pk)
            except self.client.exceptions.ResourceNotFoundException:
                # The version was deleted. Journals outlive deployments; where one does not, Drift says so.
                self._invoke(_unqualified(worker), pk)

    def _invoke(self, function: str, pk: str) -> None:
        self.client.invoke(FunctionName=function, InvocationType="Event", Payload=_message(pk).encode())


@dataclass(frozen=True, slots=True)
class SqsDispatcher:
    """Sends messages to standard queues: `worker` is a queue's URL. Needs sqs:SendMessage on them."""

    client: SQSClient

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        delay_s = min(-(-delay_ms // 1000), MAX_DELAY_S)
        with _store_errors():
            self.client.send_message(QueueUrl=worker, MessageBody=_message(pk), DelaySeconds=delay_s)


class AwsDispatcher:
    """Sends for each worker in the way that its address says, on the account of the environment."""

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        dispatcher = self._lambda if worker.startswith("arn:") else self._sqs
        dispatcher.dispatch(worker, pk, delay_ms=delay_ms)

    @cached_property
    def _lambda(self) -> LambdaDispatcher:
        return LambdaDispatcher(boto3.client("lambda", config=client_config()))

    @cached_property
    def _sqs(self) -> SqsDispatcher:
        return SqsDispatcher(boto3.client("sqs", config=client_config()))


def _message(pk: str) -> str:
    """What `entry.worker` reads."""
    return compact({"task": pk})


def _unqualified(arn: str) -> str:
    """arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME, without the version that may follow."""
    return ":".join(arn.split(":")[:7])


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise StoreError(error_reason(error)) from error
