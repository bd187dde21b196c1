"""A KMS in memory. As a pytest plugin, functions in this process reach it through the environment."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault
from mcp_roundtrip_tools.run.services.kms import ECC, Answer, FakeKms, respond
from mcp_roundtrip_tools.template.model import REGION
from support.aws_clients import FUNCTION


class FailingKms(FakeKms):
    """A KMS that fails as a test wants, and whose keys can be created and withdrawn."""

    def __init__(self, *, region: str = REGION) -> None:
        super().__init__(region=region)
        self._failures: list[tuple[str | None, str]] = []

    def fail_next(
        self, count: int, code: str = "ThrottlingException", *, operation: str | None = None
    ) -> None:
        """Answer the next `count` requests (for `operation`, if it is given) with the error `code`."""
        self._failures += [(operation, code)] * count

    def call(self, operation: str, members: Answer) -> Answer:
        for number, (only, code) in enumerate(self._failures):
            if only in (None, operation):
                del self._failures[number]
                self.calls[operation] += 1
                raise ServiceFault(code, "injected")
        return super().call(operation, members)

    def CreateKey(self, *, KeySpec: str, KeyUsage: str) -> Answer:
        return {"KeyMetadata": {"Arn": signing_key(self) if KeySpec == ECC else mac_key(self)}}

    def DisableKey(self, *, KeyId: str) -> Answer:
        self.find(KeyId).state = "Disabled"
        return {}

    def EnableKey(self, *, KeyId: str) -> Answer:
        self.find(KeyId).state = "Enabled"
        return {}

    def ScheduleKeyDeletion(self, *, KeyId: str, PendingWindowInDays: int = 30) -> Answer:
        key = self.find(KeyId)
        key.state = "PendingDeletion"
        return {"KeyId": key.arn, "KeyState": key.state, "PendingWindowInDays": PendingWindowInDays}


def serve(kms: FakeKms) -> closing[HttpServer]:
    """Return a server of `kms`, which the end of a block closes."""
    return closing(HttpServer(partial(respond, kms)).start())


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingKms]:
    fake = FailingKms()
    with serve(fake) as server:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL_KMS": server.url}.items():
            monkeypatch.setenv(name, value)
        yield fake


def signing_key(kms: FakeKms) -> str:
    return kms.import_key(ec.generate_private_key(ec.SECP256R1()))


def mac_key(kms: FakeKms) -> str:
    return kms.import_key(secrets.token_bytes(32))
