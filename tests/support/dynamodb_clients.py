"""Clients of an emulated DynamoDB, task tables, and network failures."""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.aws_clients import DEFAULT_KIND, EmulatedService
from support.sam_applications import http

JSON = "application/x-amz-json-1.0"


client: Callable[..., Any] = partial(EmulatedService, "dynamodb")


TABLE = {
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
}
"""CloudFormation properties of the tables of tasks and approvals."""


def new_table(dynamodb: Any, name: str = "") -> str:
    """Create a table as in the template, and return its name, which is a new one unless it is given."""
    name = name or f"tasks-{secrets.token_hex(8)}"
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        **TABLE,
    )
    # The emulators create tables at once, so polling needs no sleep.
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 0, "MaxAttempts": 100})
    return name


@dataclass
class Wire:
    """A proxy of DynamoDB for `behind` that records requests, loses responses and refuses requests."""

    upstream: str = ""
    lose: list[Callable[[], object]] = field(default_factory=list)
    """One function per lost response, called before the client repeats the request."""
    refuse: list[tuple[Any, ...]] = field(default_factory=list)
    """HTTP status, error code and optional further members of the next responses."""
    operations: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def __call__(self, request: Request) -> Response:
        target = request.header("x-amz-target") or ""
        self.operations.append(target.partition(".")[2])
        self.bodies.append(json.loads(request.body))
        if self.refuse:
            status, code, *members = self.refuse.pop(0)
            body = {"__type": code, "message": "refused"}
            return _reply(status, json.dumps(body | dict(*members)).encode())
        reply = self._forwarded(target, request)
        if self.lose:
            self.lose.pop(0)()
            raise ConnectionAbortedError  # the server closes the connection
        return reply

    def _forwarded(self, target: str, request: Request) -> Response:
        authorization = request.header("authorization") or ""
        headers = {"X-Amz-Target": target, "Content-Type": JSON, "Authorization": authorization}
        answer = http(self.upstream, method="POST", body=request.body, headers=headers)
        return _reply(answer.status, answer.body)


def _reply(status: int, body: bytes) -> Response:
    return Response(status, (("Content-Type", JSON),), body)


@contextmanager
def behind(wire: Wire, *, attempts: int = 1, kind: str = DEFAULT_KIND) -> Iterator[Any]:
    """Return a client that reaches DynamoDB through `wire`."""
    with (
        closing(HttpServer(wire, max_body=16 * 1024 * 1024).start()) as server,
        closing(client(server.url, attempts=attempts, kind=kind)) as connected,
    ):
        yield connected
