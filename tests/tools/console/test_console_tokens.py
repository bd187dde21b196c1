"""Access tokens for the client that the console plays."""

from dataclasses import dataclass

import pytest

from mcp_roundtrip_tools.console.application import issue_token, list_users
from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, User

ISSUER = "http://127.0.0.1:3001"


@dataclass(frozen=True)
class App:
    """What the API needs of a running template."""

    issuer: LocalIssuer | None = None


@pytest.fixture(scope="module")
def app():
    users = (User("ada", frozenset({"b", "a"})), User("bob"))
    return App(LocalIssuer(ISSUER, users, lambda: "http://127.0.0.1:3000/mcp"))


def token(app, **body):
    found: str = issue_token(app, ApiRequest({}, body))["token"]  # type: ignore[arg-type]  # a stand-in
    return found


def test_users_are_listed_with_their_scopes(app):
    expected = [{"name": "ada", "scopes": ["a", "b"]}, {"name": "bob", "scopes": None}]
    assert list_users(app) == expected  # type: ignore[arg-type]  # a stand-in
    assert list_users(App()) == []  # type: ignore[arg-type]  # a stand-in


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
def test_invalid_users_and_scopes_are_refused(app, body, status):
    with pytest.raises(ConsoleError) as caught:
        token(app, **body)
    assert caught.value.status == status


def test_without_an_issuer_there_are_no_tokens():
    with pytest.raises(ConsoleError) as caught:
        token(App(), user="ada")
    assert caught.value.status == 409
