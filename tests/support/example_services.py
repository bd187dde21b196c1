"""The stand-ins of the services that the examples call.

A pytest plugin: functions that a test runs in its own process find the stand-ins' addresses in the
environment. `StandIn` is one of them that fails, and records its requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from unittest.mock import patch

import pytest

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.stand_ins import load_respond, serve_stand_ins
from support.project import FUNCTIONS


@pytest.fixture(scope="module")
def example_services() -> Iterator[None]:
    with serve_stand_ins(FUNCTIONS.parent / "template.yaml") as variables, patch.dict(os.environ, variables):
        yield


class StandIn:
    """A stand-in in `stand_ins/` that first returns the replies in `failures`."""

    def __init__(self, name: str) -> None:
        self.failures: list[Response] = []
        self.requests: list[Request] = []
        self.respond = load_respond(FUNCTIONS.parent / f"development/stand_ins/{name}.py")

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return self.failures.pop(0) if self.failures else self.respond(request)

    @property
    def paths(self) -> list[str]:
        return [request.target.partition("?")[0] for request in self.requests]


@contextmanager
def stand_in(name: str, *variables: str) -> Iterator[StandIn]:
    """Serve a stand-in of its own, whose address is in these variables."""
    service = StandIn(name)
    with (
        closing(HttpServer(service).start()) as server,
        patch.dict(os.environ, dict.fromkeys(variables, server.url)),
    ):
        yield service
