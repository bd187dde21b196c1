"""The console's own server: its page, its API, and the endpoint for the client that the page plays."""

from __future__ import annotations

from collections.abc import Callable
from traceback import format_exc
from typing import Any, Final

from mcp_roundtrip_tools.console.guard import (
    authority,
    refuse_embedding,
    refuse_other_sites,
    refuse_proxies,
    refuse_strangers,
    without_browser,
)
from mcp_roundtrip_tools.console.pages import INDEX, page_file, with_security_headers
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError, read_body, read_query
from mcp_roundtrip_tools.console.routes import ROUTES
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response

FOLDER: Final = "/console/"
API: Final = "/console/api/"


class Console:
    """Answers the requests to the console's port.

    `endpoint` answers what the page sends to the HTTP API, which has the port `endpoint_port`.
    """

    def __init__(self, app: LocalApp, endpoint: Callable[[Request], Response], endpoint_port: int) -> None:
        self._app = app
        self._endpoint = endpoint
        self._endpoint_port = endpoint_port

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if refusal := refuse_proxies(request):
            return with_security_headers(refusal)
        if path.startswith(API):
            return with_security_headers(refuse_other_sites(request) or self._respond(request, path))
        if path.startswith(FOLDER) or (path == "/" and request.method in ("GET", "HEAD")):
            return with_security_headers(_page(request, path[len(FOLDER) :] or INDEX))
        if refusal := refuse_strangers(request):
            return with_security_headers(refusal)
        return self._endpoint(without_browser(request, self._endpoint_port))

    def _respond(self, request: Request, path: str) -> Response:
        """Answer one request to the API."""
        try:
            return json_response(200, self._call(request, path.removeprefix(API)))
        except ConsoleError as error:
            return json_response(error.status, {"message": str(error), **error.members})
        except Exception as error:
            self._app.recorder.note(f"the console failed:\n{format_exc()}")
            return json_response(
                500, {"message": f"the console failed: {type(error).__name__}; see the terminal"}
            )

    def _call(self, request: Request, path: str) -> Any:
        matches = [(route, found) for route in ROUTES if (found := route.match(path)) is not None]
        if not matches:
            raise ConsoleError(404, "the console's API has no such path")
        for route, found in matches:
            if route.method == request.method:
                body = {} if request.method == "GET" else read_body(request)
                parameters = {**read_query(request.target), **found}
                host = authority(request, self._endpoint_port)
                return route.answer(self._app, ApiRequest(parameters, body, host))
        raise ConsoleError(405, f"{request.method} is not allowed for this path")


def _page(request: Request, name: str) -> Response:
    if refusal := refuse_embedding(request):
        return refusal
    if request.method not in ("GET", "HEAD"):
        return json_response(405, {"message": f"{request.method} is not allowed for a file"})
    return page_file(name)
