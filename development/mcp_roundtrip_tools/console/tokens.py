"""Access tokens of the local issuer for the client that the console plays."""

from __future__ import annotations

from typing import Any

from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp


def issue_token(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST tokens`: a token with these scopes, or with the user's. Raises ConsoleError."""
    if app.issuer is None:
        raise ConsoleError(409, "no local issuer runs: start make run with USER=name or AuthMode=bearer")
    user, scopes = request.text("user"), request.body.get("scopes")
    if scopes is not None and not _is_list_of_texts(scopes):
        raise ConsoleError(400, "scopes must be an array of strings")
    try:
        return {"token": app.issuer.token(user, scopes)}
    except ValueError as error:
        raise ConsoleError(422, f"{error}") from None


def list_users(app: LocalApp) -> list[dict[str, Any]]:
    """Return the users of the local issuer; none without it. `scopes` is None for those that a tool needs."""
    users = () if app.issuer is None else app.issuer.users
    return [
        {"name": user.name, "scopes": None if user.scopes is None else sorted(user.scopes)} for user in users
    ]


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
