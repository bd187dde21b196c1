"""The routes of the console's API."""

from __future__ import annotations

from collections.abc import Callable

from mcp_roundtrip_local.app import LocalApp
from mcp_roundtrip_local.console.api import ApiRoute
from mcp_roundtrip_local.console.application import describe_application
from mcp_roundtrip_local.console.sources import discard_sources, edit_sources, show_sources
from mcp_roundtrip_local.console.state_view import damage_state, show_state


def api_routes(app: Callable[[], LocalApp]) -> tuple[ApiRoute, ...]:
    """Return the routes; `app` returns the running template."""
    return (
        ApiRoute("GET", "application", lambda request: describe_application(app())),
        ApiRoute("POST", "states", lambda request: show_state(app(), request)),
        ApiRoute("POST", "states/damage", damage_state),
        ApiRoute("GET", "sources/{function}", lambda request: show_sources(app(), request)),
        ApiRoute("PUT", "sources/{function}", lambda request: edit_sources(app(), request)),
        ApiRoute("DELETE", "sources/{function}", lambda request: discard_sources(app(), request)),
    )
