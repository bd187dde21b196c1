"""boto3 clients with timeouts that leave time for a response, and helpers for all AWS calls.

The Region, the endpoint and the credentials of a client come from the environment, as for every AWS SDK,
unless a function takes them as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

Client = TypeVar("Client", bound=Any)

AWS_ERRORS: Final = (ClientError, BotoCoreError)
"""The exceptions of a failed call."""


def client_config() -> Config:
    """Return the configuration of a client: connect in 1 s, read in 2 s, three attempts."""
    return Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})


def dynamodb_client(region: str | None = None, endpoint_url: str | None = None) -> DynamoDBClient:
    """Create a DynamoDB client."""
    return boto3.client("dynamodb", region_name=region, endpoint_url=endpoint_url, config=client_config())


def kms_client(region: str | None = None, endpoint_url: str | None = None) -> KMSClient:
    """Create a KMS client."""
    return boto3.client("kms", region_name=region, endpoint_url=endpoint_url, config=client_config())


def lambda_client() -> LambdaClient:
    """Create a Lambda client for asynchronous invocations."""
    return boto3.client("lambda", config=client_config())


def sqs_client() -> SQSClient:
    """Create an SQS client."""
    return boto3.client("sqs", config=client_config())


def s3_client(region: str | None = None, endpoint_url: str | None = None) -> S3Client:
    """Create an S3 client whose presigned URLs work in every Region.

    It signs with version 4 and names the bucket's Region in the host. By default, boto3 presigns with version
    2, which newer Regions refuse, and for the host of us-east-1, whose redirect invalidates the signature.
    """
    # S3 answers an upload once it has stored all of it.
    signing = Config(signature_version="s3v4", s3={"addressing_style": "virtual"}, read_timeout=10)
    config = client_config().merge(signing)
    return boto3.client("s3", region_name=region, endpoint_url=endpoint_url, config=config)


def count_requests(client: Client, on_request: Callable[[str], None]) -> Client:
    """Call `on_request` with the name of the service for each request of `client`, retries included."""
    service = client.meta.service_model.service_name

    def before_send(**request: Any) -> None:
        on_request(service)

    client.meta.events.register(f"before-send.{service}", before_send)
    return client


def error_reason(error: ClientError | BotoCoreError) -> str:
    """Return the reason for the log: the AWS error code, `timeout`, or the name of the exception."""
    if isinstance(error, ClientError):
        return error.response["Error"]["Code"]
    if isinstance(error, (ConnectTimeoutError, ReadTimeoutError)):
        return "timeout"
    return type(error).__name__
