"""Which requests are the console's, and what answers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcp_roundtrip_local.api_gateway.routing import has_root
from mcp_roundtrip_local.app import LocalApp
from mcp_roundtrip_local.console.api import PREFIX, Api
from mcp_roundtrip_local.console.guard import refuse_embedding, refuse_proxies, without_browser
from mcp_roundtrip_local.console.journal_writes import JournalWrites
from mcp_roundtrip_local.console.pages import INDEX, page_file
from mcp_roundtrip_local.console.routes import api_routes
from mcp_roundtrip_local.console.security_headers import with_security_headers
from mcp_roundtrip_local.http.messages import Request, Response, json_response

FOLDER: Final = "/console/"


class Console:
    """Answers the requests of a browser for `/`, and everything below `/console/`.

    `app` returns the running template, `writes` has the writes of its tasks. A template with its own route
    for `/` keeps it.
    """

    def __init__(
        self, app: Callable[[], LocalApp], writes: JournalWrites, log: Callable[[str], None]
    ) -> None:
        self._app = app
        self._api = Api(api_routes(app, writes), log)

    def before(self, respond: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Return `respond` for all requests but the console's."""
        return lambda request: self.respond(request) or respond(without_browser(request))

    def respond(self, request: Request) -> Response | None:
        """Answer a request to the console; return None for every other request."""
        path = request.target.partition("?")[0]
        if path == "/" and self._is_for_page(request):
            path = FOLDER
        if path != FOLDER.rstrip("/") and not path.startswith(FOLDER):
            return None
        answer = refuse_proxies(request) or (
            self._api.respond(request)
            if path.startswith(PREFIX)
            else _page(request, path[len(FOLDER) :] or INDEX)
        )
        return with_security_headers(answer)

    def _is_for_page(self, request: Request) -> bool:
        accepts = "text/html" in (request.header("accept") or "")
        return request.method in ("GET", "HEAD") and accepts and not has_root(self._app().routes())


def _page(request: Request, name: str) -> Response:
    if refusal := refuse_embedding(request):
        return refusal
    if request.method not in ("GET", "HEAD"):
        return json_response(405, {"message": f"{request.method} is not allowed for a file"})
    return page_file(name)
