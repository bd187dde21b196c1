"""The question page of a server in this process, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from mcp_roundtrip import Server
from mcp_roundtrip_local.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_local.execution.environment import InvocationResult
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.observation.recorder import RunRecorder
from mcp_roundtrip_local.template.model import Route
from support.deployment import Deployment
from support.question_links import WaitingCalls
from support.question_page import PATH


@dataclass
class ServedPage:
    """Where the page is, and the calls that wait."""

    url: str
    calls: WaitingCalls

    def link(self, token: str) -> str:
        return f"{self.url}?token={token}"


@contextmanager
def served_page(title: str = "Acme databases") -> Iterator[ServedPage]:
    deployment = Deployment(Server("databases", title=title), user=None)

    def invoke(function: str, payload: bytes) -> InvocationResult:
        return InvocationResult(json.dumps(deployment.invoke(json.loads(payload))).encode())

    with (
        closing(Gateway(lambda: [Route("ANY", PATH, "F")], invoke, RunRecorder())) as gateway,
        closing(HttpServer(gateway.respond, max_body=MAX_BODY).start()) as http,
    ):
        yield ServedPage(http.url + PATH, WaitingCalls(deployment.table))
