"""A KMS in memory. As a pytest plugin, functions in this process reach it through the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.kms import FakeKms, respond
from support.aws_clients import FUNCTION


def serve(kms: FakeKms) -> closing[HttpServer]:
    """Return a server of `kms`, which the end of a block closes."""
    return closing(HttpServer(partial(respond, kms)).start())


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKms]:
    fake = FakeKms()
    with serve(fake) as server:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL_KMS": server.url}.items():
            monkeypatch.setenv(name, value)
        yield fake


def signing_key(kms: FakeKms) -> str:
    return str(kms.CreateKey(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"])


def mac_key(kms: FakeKms) -> str:
    return str(kms.CreateKey(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"])
