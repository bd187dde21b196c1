"""The routes of an HTTP API and its CORS configuration, as API Gateway applies them to a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip_tools.run.http.messages import Request, Response
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
    """The CORS of an API or function URL. `allow_origins` may contain `*`, `https://*` and `http://*`."""

    allow_origins: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age_s: int | None = None
    allow_credentials: bool = False

    @classmethod
    def of(cls, configuration: Any) -> Cors | None:
        """Read the property: an object, or for SAM also `true` or a string with one origin.

        SAM makes AllowOrigins of the short forms, and nothing else.
        """
        if configuration is None or configuration is False:
            return None
        if configuration is True:
            return cls(("*",))
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
        any_origin = "*" in self.allow_origins
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
