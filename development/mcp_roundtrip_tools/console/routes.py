"""The routes of the console's API: methods and paths, and what answers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from mcp_roundtrip_tools.console.activity import show_activity, show_exchange
from mcp_roundtrip_tools.console.application import describe_application, issue_token
from mcp_roundtrip_tools.console.invocations import invoke_function
from mcp_roundtrip_tools.console.requests import ApiRequest
from mcp_roundtrip_tools.console.sources import discard_sources, edit_sources, show_sources
from mcp_roundtrip_tools.console.state_view import damage_state, show_state
from mcp_roundtrip_tools.console.tasks import expire_lease, kill_environment, list_tasks, show_task
from mcp_roundtrip_tools.run.app import LocalApp


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A method and a path of the API, in which `{name}` stands for one segment.

    `answer` returns the JSON document of the response. It may raise ConsoleError.
    """

    method: str
    path: str
    answer: Callable[[LocalApp, ApiRequest], Any]

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


ROUTES: Final = (
    ApiRoute("GET", "application", describe_application),
    ApiRoute("GET", "exchanges/{id}", show_exchange),
    ApiRoute("GET", "activity", show_activity),
    ApiRoute("POST", "states", show_state),
    ApiRoute("POST", "states/damage", damage_state),
    ApiRoute("GET", "tasks", list_tasks),
    ApiRoute("GET", "tasks/{id}", show_task),
    ApiRoute("POST", "tasks/{id}/expire-lease", expire_lease),
    ApiRoute("POST", "environments/{id}/kill", kill_environment),
    ApiRoute("POST", "invocations", invoke_function),
    ApiRoute("POST", "tokens", issue_token),
    ApiRoute("GET", "sources/{function}", show_sources),
    ApiRoute("PUT", "sources/{function}", edit_sources),
    ApiRoute("DELETE", "sources/{function}", discard_sources),
)
