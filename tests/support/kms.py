"""boto3 clients for a KMS that is not AWS."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from botocore.config import Config
from mypy_boto3_kms import KMSClient

from mcp_roundtrip.local.kms import FakeKms, serve

REGION = "us-east-1"


def client(endpoint_url: str | None = None, *, attempts: int = 1, timeout_s: float = 5) -> KMSClient:
    """A real client. It does not retry unless told to: backing off takes seconds."""
    return boto3.client(
        "kms",
        region_name=REGION,
        endpoint_url=endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(
            connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": attempts}
        ),
    )


@contextmanager
def running(kms: FakeKms) -> Iterator[KMSClient]:
    with serve(kms) as endpoint:
        connected = client(endpoint.endpoint_url)
        try:
            yield connected
        finally:
            connected.close()


def signing_key(kms: KMSClient) -> str:
    return kms.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"]
