"""Select the route of an HTTP API for a request.

Source: API Gateway developer guide, "Create routes for HTTP APIs in API Gateway": a full match precedes a
greedy variable, a greedy variable precedes `$default`, and a method precedes ANY.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcp_roundtrip_tools.template.model import Route


def match_route(routes: Iterable[Route], method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route for `method` and the decoded `path`, with its path parameters."""
    matches = [
        (route, parameters)
        for route in routes
        if route.method in ("ANY", method) and (parameters := _parameters(route.path, path)) is not None
    ]
    return min(matches, key=lambda found: _rank(found[0]), default=None)


def _rank(route: Route) -> tuple[bool, bool, int, int, bool]:
    path = route.path
    return path == "$default", "+}" in path, -path.count("/"), path.count("{"), route.method == "ANY"


def _parameters(pattern: str, path: str) -> dict[str, str] | None:
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
    """Return the shortest path without variables that accepts POST; `/` if there is none.

    Among the routes of MCP servers it is that of the endpoint.
    """
    posted = [route.path for route in routes if route.method in ("ANY", "POST") and "{" not in route.path]
    paths = ("/" if path == "$default" else path for path in posted)
    return min(paths, key=len, default="/")


def has_root(routes: Iterable[Route]) -> bool:
    """Return whether a route serves `GET /` by itself; `$default` does not count."""
    return any(route.path == "/" and route.method in ("ANY", "GET") for route in routes)
