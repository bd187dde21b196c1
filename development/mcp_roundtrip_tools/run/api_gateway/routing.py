"""Routes, CORS, and the faults that API Gateway answers itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.execution.log_text import author_traceback, library_events
from mcp_roundtrip_tools.run.http.browser_protection import came_through_proxy
from mcp_roundtrip_tools.run.http.messages import Request, Response, error_response, json_response
from mcp_roundtrip_tools.run.observation.records import HttpExchange, RecordedInvocation, member, walk
from mcp_roundtrip_tools.template.model import Route


def match_route(routes: Iterable[Route], method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route for `method` and the decoded `path`, with its path parameters."""
    matches = [
        (route, parameters)
        for route in routes
        if route.method in ("ANY", method) and (parameters := path_parameters(route.path, path)) is not None
    ]
    return min(matches, key=lambda found: _rank(found[0]), default=None)


def _rank(route: Route) -> tuple[bool, bool, int, int, bool]:
    path = route.path
    return path == "$default", "+}" in path, -path.count("/"), path.count("{"), route.method == "ANY"


def path_parameters(pattern: str, path: str) -> dict[str, str] | None:
    """Return the parameters of a decoded path, such as `id` in `tasks/{id}`; None for another path."""
    if pattern == "$default":
        return {}
    parts, given = pattern.split("/"), path.split("/")
    if parts[-1].endswith("+}"):
        last = len(parts) - 1
        given = [*given[:last], "/".join(given[last:])]
    if len(parts) != len(given):
        return None
    parameters = {}
    for part, value in zip(parts, given, strict=True):
        if part.startswith("{") and value:
            parameters[part.strip("{+}")] = value
        elif part != value:
            return None
    return parameters


def shortest_path(routes: Iterable[Route]) -> str:
    """Return the shortest path without variables that accepts POST, that of the endpoint; `/` without one."""
    posted = [route.path for route in routes if route.method in ("ANY", "POST") and "{" not in route.path]
    paths = ("/" if path == "$default" else path for path in posted)
    return min(paths, key=len, default="/")


def has_root(routes: Iterable[Route]) -> bool:
    """Return whether a route serves `GET /` by itself; `$default` does not count."""
    return any(route.path == "/" and route.method in ("ANY", "GET") for route in routes)


_PREFIX = "access-control-"


@dataclass(frozen=True, slots=True)
class Cors:
    """The CorsConfiguration of an API. `allow_origins` may contain `*`, `https://*` and `http://*`."""

    allow_origins: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age_s: int | None = None
    allow_credentials: bool = False

    @classmethod
    def of(cls, configuration: Any) -> Cors | None:
        """Read the property: an object, or for SAM also `true` or a string with one origin."""
        if configuration is None or configuration is False:
            return None
        if configuration is True:
            return cls(("*",), ("*",), ("*",))
        if not isinstance(configuration, Mapping):
            return cls((str(configuration),))
        age = configuration.get("MaxAge")
        return cls(
            allow_origins=_texts(configuration.get("AllowOrigins")),
            allow_methods=_texts(configuration.get("AllowMethods")),
            allow_headers=_texts(configuration.get("AllowHeaders")),
            expose_headers=_texts(configuration.get("ExposeHeaders")),
            max_age_s=None if age is None else int(age),
            allow_credentials=str(configuration.get("AllowCredentials", False)).lower() == "true",
        )

    def allows(self, origin: str) -> bool:
        """Return whether pages of this origin may read responses."""
        scheme = origin.partition("://")[0]
        return any(allowed in (origin, "*", f"{scheme}://*") for allowed in self.allow_origins)

    def preflight(self, request: Request) -> Response | None:
        """Return the response to a preflight request; None for others. A refused origin gets no headers."""
        is_preflight = request.method == "OPTIONS" and request.header("access-control-request-method")
        if not is_preflight or request.header("origin") is None:
            return None
        members = {
            "allow-methods": self.allow_methods,
            "allow-headers": self.allow_headers,
            "max-age": () if self.max_age_s is None else (str(self.max_age_s),),
        }
        allowed = self._allowed(request)
        headers = [(_PREFIX + name, ",".join(texts)) for name, texts in members.items() if texts and allowed]
        return Response(204, (*allowed, *headers))

    def add_to(self, response: Response, request: Request) -> Response:
        """Return the response with the headers of this configuration in place of the function's."""
        kept = (header for header in response.headers if not header[0].lower().startswith(_PREFIX))
        return Response(response.status, (*kept, *self._allowed(request)), response.body)

    def _allowed(self, request: Request) -> tuple[tuple[str, str], ...]:
        origin = request.header("origin")
        if origin is None or not self.allows(origin):
            return ()
        any_origin = "*" in self.allow_origins and not self.allow_credentials
        headers = [(f"{_PREFIX}allow-origin", "*" if any_origin else origin)]
        if not any_origin:
            headers.append(("vary", "origin"))
        if self.expose_headers:
            headers.append((f"{_PREFIX}expose-headers", ",".join(self.expose_headers)))
        if self.allow_credentials:
            headers.append((f"{_PREFIX}allow-credentials", "true"))
        return tuple(headers)


def _texts(value: Any) -> tuple[str, ...]:
    # An empty CommaDelimitedList parameter is a list of one empty string.
    texts = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(str(text) for text in texts if text != "")


_EVENTS: Final = frozenset({"misconfigured", "definition_failed"})
"""The library's events for what only the author can correct."""


def explain_fault(request: Request, response: Response, exchange: HttpExchange, folder: Path) -> Response:
    """Return the response with the problem of the function instead of a neutral text.

    Requests through a proxy keep it: their callers may be on other computers. `folder` is the template's.
    """
    is_fault = response.status == 500 or member(json_object(response.body), "error", "code") == INTERNAL_ERROR
    if not is_fault or came_through_proxy(request):
        return response
    problem = _problem(exchange, folder)
    if problem is None:
        return response
    message = json_object(request.body)
    if message.get("jsonrpc") != "2.0" or "id" not in message:
        return error_response(response.status, problem)
    error: dict[str, Any] = {"code": INTERNAL_ERROR, "message": problem}
    return json_response(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})


def _problem(exchange: HttpExchange, folder: Path) -> str | None:
    """Return why a function could not run, or what its definitions or settings lack."""
    refused = (_import_error(each, folder) for each in walk(exchange) if each.init_failed)
    logged = (
        author_traceback(str(event.get("exception", "")), folder)
        for event in library_events(exchange)
        if event["message"] in _EVENTS
    )
    return next((problem for problem in (*refused, *logged) if problem), None)


def _import_error(invocation: RecordedInvocation, folder: Path) -> str:
    """Return the error of a function that could not be imported, after the lines of the author's files."""
    trace = json_object(invocation.response or b"").get("stackTrace")
    frames = "".join(f"{str(each).rstrip()}\n" for each in trace) if isinstance(trace, list) else ""
    return author_traceback(f"{frames}{invocation.error}", folder)
