"""The question page of a server in this process, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip import Server
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.template.model import Route
from support.deployment import Deployment
from support.page_user import visit_page
from support.question_page import PATH
from support.stored_tasks import StoredTasks

if TYPE_CHECKING:
    from support.browser import RunProgram


WIDE: Final = {"viewport": {"width": 760, "height": 640}}


@dataclass
class ServedPage:
    """Where the page is, the calls that wait, and a browser."""

    url: str
    calls: StoredTasks
    run_in_browser: RunProgram

    def link(self, token: str) -> str:
        return f"{self.url}?token={token}"

    def visit(self, token: str, *steps: Any, **options: Any) -> Any:
        """Open the link and follow these steps, as `visit_page` does."""
        return visit_page(self.run_in_browser, ("goto", self.link(token)), *steps, **{**WIDE, **options})


@contextmanager
def served_page(run_in_browser: RunProgram) -> Iterator[ServedPage]:
    deployment = Deployment(Server("databases", title="Acme databases"), user=None)

    def invoke(function: str, payload: bytes) -> InvocationResult:
        return InvocationResult(json.dumps(deployment.invoke(json.loads(payload))).encode())

    with (
        closing(Gateway(lambda: [Route("ANY", PATH, "F")], invoke, RunRecorder())) as gateway,
        closing(HttpServer(gateway.respond, max_body=MAX_BODY).start()) as http,
    ):
        yield ServedPage(http.url + PATH, StoredTasks(deployment.table), run_in_browser)
