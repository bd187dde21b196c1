"""ministack, a third-party emulator of AWS services, in its own process.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixtures. All modules share
one process.

Differences from AWS that concern this project (1.5.33): Sign and Verify take more than 4,096
bytes, and no DryRun; GetPublicKey returns the key of a withdrawn KMS key; a key pending deletion can be
enabled and disabled; a P-256 key can be created for encryption; key administration and CreateAlias take
an alias for a key. Key policies are not enforced. ADD is exact to 28 digits only.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from mcp_roundtrip_tools.run.services.ministack import serve_ministack
from support import dynamodb_clients, kms_clients
from support.sam_applications import http

SERVICES = ("dynamodb", "kms", "sqs")


@pytest.fixture(scope="session")
def ministack() -> Iterator[str]:
    """Return the endpoint URL of ministack."""
    with serve_ministack({"SERVICES": ",".join(SERVICES)}) as url:
        yield url


@pytest.fixture
def ministack_kms(ministack: str) -> Iterator[Any]:
    """Return a client of ministack's KMS, without keys: all resources are deleted."""
    assert http(f"{ministack}/_ministack/reset", method="POST").status == 200
    with closing(kms_clients.client(ministack)) as connected:
        yield connected


@pytest.fixture(scope="session")
def ministack_dynamodb(ministack: str) -> Iterator[Any]:
    """Return a client of ministack's DynamoDB. Tables last for one test."""
    with closing(dynamodb_clients.client(ministack)) as connected:
        yield connected
