"""The routes of the console's API: methods and paths, and what answers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from mcp_roundtrip_tools.console.activity import show_activity, show_exchange
from mcp_roundtrip_tools.console.application import describe_application, issue_token
from mcp_roundtrip_tools.console.invocations import invoke_function
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.console.requests import ApiRequest
from mcp_roundtrip_tools.console.sources import discard_sources, edit_sources, show_sources
from mcp_roundtrip_tools.console.state_view import damage_state, show_state
from mcp_roundtrip_tools.console.tasks import expire_lease, kill_environment, list_tasks, show_task
from mcp_roundtrip_tools.run.app import LocalApp

Handler = Callable[[ApiRequest], Any]
"""Returns the JSON document of the response. Raises ConsoleError."""


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A method and a path of the API, in which `{name}` stands for one segment."""

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


def api_routes(app: Callable[[], LocalApp], writes: JournalWrites) -> tuple[ApiRoute, ...]:
    """Return the routes; `app` returns the running template."""

    def route(method: str, path: str, answer: Callable[[LocalApp, ApiRequest], Any]) -> ApiRoute:
        return ApiRoute(method, path, lambda request: answer(app(), request))

    return (
        route("GET", "application", describe_application),
        route("GET", "exchanges/{id}", show_exchange),
        route("GET", "activity", show_activity),
        route("POST", "states", show_state),
        route("POST", "states/damage", damage_state),
        route("GET", "tasks", list_tasks),
        route("GET", "tasks/{id}", partial(show_task, writes)),
        route("POST", "tasks/{id}/expire-lease", expire_lease),
        route("POST", "environments/{id}/kill", kill_environment),
        route("POST", "invocations", invoke_function),
        route("POST", "tokens", issue_token),
        route("GET", "sources/{function}", show_sources),
        route("PUT", "sources/{function}", edit_sources),
        route("DELETE", "sources/{function}", discard_sources),
    )
