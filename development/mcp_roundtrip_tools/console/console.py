"""The console's own server: its page, its API, and the endpoint for the client that the page plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcp_roundtrip_tools.console.api import PREFIX, Api
from mcp_roundtrip_tools.console.guard import (
    refuse_embedding,
    refuse_proxies,
    refuse_strangers,
    without_browser,
)
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.console.pages import INDEX, page_file
from mcp_roundtrip_tools.console.routes import api_routes
from mcp_roundtrip_tools.console.security_headers import with_security_headers
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response

FOLDER: Final = "/console/"


class Console:
    """Answers the requests to the console's port.

    `app` returns the running template, `writes` has the writes of its tasks. `endpoint` answers what the page
    sends to the HTTP API, which has the port `endpoint_port`.
    """

    def __init__(
        self,
        app: Callable[[], LocalApp],
        writes: JournalWrites,
        log: Callable[[str], None],
        endpoint: Callable[[Request], Response],
        endpoint_port: int,
    ) -> None:
        self._api = Api(api_routes(app, writes), log, endpoint_port)
        self._endpoint = endpoint
        self._endpoint_port = endpoint_port

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if refusal := refuse_proxies(request):
            return with_security_headers(refusal)
        if path.startswith(PREFIX):
            return with_security_headers(self._api.respond(request))
        if path.startswith(FOLDER) or (path == "/" and request.method in ("GET", "HEAD")):
            return with_security_headers(_page(request, path[len(FOLDER) :] or INDEX))
        if refusal := refuse_strangers(request):
            return with_security_headers(refusal)
        return self._endpoint(without_browser(request, self._endpoint_port))


def _page(request: Request, name: str) -> Response:
    if refusal := refuse_embedding(request):
        return refusal
    if request.method not in ("GET", "HEAD"):
        return json_response(405, {"message": f"{request.method} is not allowed for a file"})
    return page_file(name)
