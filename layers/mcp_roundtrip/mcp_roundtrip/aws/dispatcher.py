"""Sends for workers: asynchronous invocations of a Lambda function.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mcp_roundtrip.canonical import compact
from mcp_roundtrip.errors import StoreError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


@dataclass(frozen=True, slots=True)
class LambdaDispatcher:
    """Needs lambda:InvokeFunction on the workers. A kick that arrives twice does no harm."""

    client: LambdaClient

    @classmethod
    def create(cls) -> LambdaDispatcher:
        """A dispatcher on the account and Region of the execution environment."""
        retries = {"mode": "standard", "total_max_attempts": 2}
        config = Config(connect_timeout=1, read_timeout=2, retries=retries)  # type: ignore[arg-type]  # a literal type botocore keeps to itself
        return cls(boto3.client("lambda", config=config))

    def kick(self, worker: str, pk: str) -> None:
        """Invoke `worker` (an ARN, with the version or alias that created the task) with the task's key."""
        try:
            self.client.invoke(
                FunctionName=worker, InvocationType="Event", Payload=compact({"task": pk}).encode()
            )
        except ClientError as error:
            raise StoreError(error.response["Error"]["Code"]) from error
        except BotoCoreError as error:
            raise StoreError(type(error).__name__) from error
