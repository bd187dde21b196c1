"""Access tokens for the client that the console plays, and the callers of recorded requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.state.claims import principal_digest
from mcp_roundtrip_tools.console.callers import caller_of
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.console.tokens import issue_token, list_users
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User
from mcp_roundtrip_tools.run.observation.records import HttpExchange

ISSUER = "http://127.0.0.1:3001"


@dataclass(frozen=True)
class App:
    """What the API needs of a running template."""

    issuer: LocalIssuer | None = None


@pytest.fixture(scope="module")
def app() -> App:
    users = (User("ada", frozenset({"b", "a"})), User("bob"))
    return App(LocalIssuer(ISSUER, users, lambda: "http://127.0.0.1:3000/mcp"))


def token(app: App, **body: Any) -> str:
    found: str = issue_token(app, ApiRequest({}, body))["token"]  # type: ignore[arg-type]  # a stand-in
    return found


def exchange(*headers: tuple[str, str]) -> HttpExchange:
    return HttpExchange("id", 0, "POST", "/mcp", headers, b"")


def test_users_are_listed_with_their_scopes(app: App) -> None:
    expected = [{"name": "ada", "scopes": ["a", "b"]}, {"name": "bob", "scopes": None}]
    assert list_users(app) == expected  # type: ignore[arg-type]  # a stand-in
    assert list_users(App()) == []  # type: ignore[arg-type]  # a stand-in


def test_the_caller_of_a_request_is_known_only_if_the_state_is_bound_to_it(app: App) -> None:
    sent = exchange(("authorization", f"Bearer {token(app, user='ada')}"))
    ada = Principal("jwt", "ada", ISSUER, "mcp-roundtrip-console")
    bob = Principal("jwt", "bob", ISSUER, "mcp-roundtrip-console")
    assert caller_of(sent, {"jti": "j", "sub": principal_digest("j", ada.canonical())}) == "ada"
    assert caller_of(sent, {"jti": "j", "sub": principal_digest("j", bob.canonical())}) is None
    assert caller_of(sent, {"jti": "j"}) is None


@pytest.mark.parametrize(
    "header", ["", "Basic x", "Bearer", "Bearer a.b.c", "Bearer é", "Bearer e30.e30.e30"]
)
def test_other_headers_name_no_caller(header: str) -> None:
    assert caller_of(exchange(("authorization", header)), {"jti": "j", "sub": "s"}) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"user": 1}, 400),
        ({"user": "ada", "scopes": "a"}, 400),
        ({"user": "ada", "scopes": [1]}, 400),
        ({"user": ""}, 422),
        ({"user": "a\nb"}, 422),
        ({"user": "ada", "scopes": ["a b"]}, 422),
    ],
)
def test_invalid_users_and_scopes_are_refused(app: App, body: Any, status: int) -> None:
    with pytest.raises(ConsoleError) as caught:
        token(app, **body)
    assert caught.value.status == status


def test_without_an_issuer_there_are_no_tokens() -> None:
    with pytest.raises(ConsoleError) as caught:
        token(App(), user="ada")
    assert caught.value.status == 409
