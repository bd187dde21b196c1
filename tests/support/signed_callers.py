"""A signed client whose clock and pauses a test controls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any

import pytest

from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.credentials import AwsCredentials
from mcp_roundtrip.aws.signed_client import MAX_IDLE_S, Retries, SignedClient, StandardRetries
from mcp_roundtrip.aws.wire_formats import SERVICES
from support.aws_clients import REGION, endpoint_of
from support.scripted_server import Reply, ScriptedServer, scripted


class Caller:
    """A signed client of KMS on a server, with a clock, that records its pauses."""

    def __init__(
        self,
        server: ScriptedServer,
        retries: Retries | None = None,
        *,
        timeout_s: float = 5,
        service: str = "kms",
        host: str | None = None,
    ) -> None:
        self.server = server
        self.now = 1_795_000_000.0
        self.pauses: list[float] = []
        endpoint = endpoint_of(server.url)
        if host is not None:
            endpoint = endpoint._replace(netloc=f"{host}:{endpoint.port}")
        self.connections = Connections(endpoint, MAX_IDLE_S, lambda: self.now)
        self.client = SignedClient(
            SERVICES[service],
            REGION,
            endpoint,
            lambda: AwsCredentials("test", "test"),
            self.connections,
            retries or StandardRetries(random=lambda: 1),
            clock=lambda: self.now,
            sleep=self.pauses.append,
            read_timeout_s=timeout_s,
        )

    def __call__(self, **options: Any) -> dict[str, Any]:
        return self.client.call("GetPublicKey", KeyId="k", **options)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.connections.close()


@contextmanager
def calling(
    *script: Reply, retries: Retries | None = None, tls: SSLContext | None = None, **options: Any
) -> Iterator[Caller]:
    """Run a server that answers as the script says, and yield a client of it."""
    with scripted(*script, tls=tls) as server, Caller(server, retries, **options) as call:
        yield call


def fails_with(code: str, kind: type[AwsError] = AwsError) -> Any:
    return pytest.raises(kind, check=lambda error: error.code == code)
