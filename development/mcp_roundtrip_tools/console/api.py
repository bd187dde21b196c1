"""The routes of the console's API: finds the handler of a request, and turns its answer into JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from traceback import format_exc
from typing import Any
from urllib.parse import unquote

from mcp_roundtrip_tools.console.guard import authority, refuse_other_sites
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError, read_body, read_query
from mcp_roundtrip_tools.run.http.messages import Request, Response

PREFIX = "/console/api/"

Handler = Callable[[ApiRequest], Any]
"""Returns the JSON document of the response. Raises ConsoleError."""


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A method and a path below `PREFIX`, in which `{name}` stands for one segment."""

    method: str
    path: str
    handler: Handler

    def match(self, path: str) -> dict[str, str] | None:
        """Return the decoded segments of `path` by their names; None if the path is another one."""
        parts, given = self.path.split("/"), path.split("/")
        if len(parts) != len(given):
            return None
        found = {}
        for part, segment in zip(parts, given, strict=True):
            if part.startswith("{"):
                found[part.strip("{}")] = unquote(segment)
            elif part != segment:
                return None
        return found


class Api:
    """Answers requests below `PREFIX`.

    `log` receives the traceback of an unexpected error. The HTTP API of the template has `endpoint_port`.
    """

    def __init__(self, routes: Sequence[ApiRoute], log: Callable[[str], None], endpoint_port: int) -> None:
        self._endpoint_port = endpoint_port
        self._routes = tuple(routes)
        self._log = log

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        if refusal := refuse_other_sites(request):
            return refusal
        try:
            return _json(200, self._call(request))
        except ConsoleError as error:
            return _json(error.status, {"message": str(error), **error.members})
        except Exception as error:
            self._log(f"the console failed:\n{format_exc()}")
            return _json(500, {"message": f"the console failed: {type(error).__name__}; see the terminal"})

    def _call(self, request: Request) -> Any:
        path = request.target.partition("?")[0].removeprefix(PREFIX)
        matches = [(route, found) for route in self._routes if (found := route.match(path)) is not None]
        if not matches:
            raise ConsoleError(404, "the console's API has no such path")
        for route, found in matches:
            if route.method == request.method:
                body = {} if request.method == "GET" else read_body(request)
                parameters = {**read_query(request.target), **found}
                return route.handler(ApiRequest(parameters, body, authority(request, self._endpoint_port)))
        raise ConsoleError(405, f"{request.method} is not allowed for this path")


def _json(status: int, document: Any) -> Response:
    # allow_nan: a value that JSON cannot hold is an error here, not in the browser.
    return Response(
        status,
        (("content-type", "application/json"),),
        json.dumps(document, allow_nan=False, separators=(",", ":")).encode(),
    )
