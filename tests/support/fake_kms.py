"""A pytest plugin: a KMS in memory, which functions in this process reach through the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms_api import serve
from support.aws_clients import FUNCTION


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKms]:
    fake = FakeKms()
    with serve(fake) as endpoint:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL_KMS": endpoint.endpoint_url}.items():
            monkeypatch.setenv(name, value)
        yield fake


def signing_key(kms: FakeKms) -> str:
    return str(kms.CreateKey(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"])


def mac_key(kms: FakeKms) -> str:
    return str(kms.CreateKey(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"])
