"""The tokens of the local issuer of `make run` for template.yaml. auth/test_flow.py signs in at it."""

from typing import Any

import httpx2
import jwt
import pytest

from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.issuer.issuer import User
from support.oauth_client import post_call
from support.served_application import FRONT_DOOR, TEMPLATE, serve

WEATHER = {"location": "Tokyo"}


@pytest.fixture(scope="module")
def app():
    users = (User("ada", frozenset({"weather:read"})), User("bob"))
    with serve(TEMPLATE, users=users) as running:
        yield running


@pytest.fixture(scope="module")
def issuer(app):
    assert app.issuer is not None
    return app.issuer


def status(app: LocalApp, token: str | None) -> int:
    return post_call(app.url(FRONT_DOOR), token, "get_weather", **WEATHER).status_code


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def test_a_token_of_the_issuer_is_accepted_and_a_call_without_one_is_not(app, issuer):
    assert status(app, issuer.token("ada")) == 200
    assert status(app, issuer.token("someone else", ["a", "b"])) == 200
    assert status(app, None) == 401


def test_a_token_has_the_claims_of_rfc_9068(app, issuer):
    token = issuer.token("ada")
    assert jwt.get_unverified_header(token)["typ"] == "at+jwt"
    claims = claims_of(token)
    assert {"iss", "exp", "aud", "sub", "client_id", "iat", "jti", "scope"} == claims.keys()
    assert (claims["iss"], claims["aud"], claims["sub"]) == (issuer.url, app.url(FRONT_DOOR), "ada")
    assert claims["scope"] == "weather:read"
    assert claims_of(issuer.token("bob", ["b", "a"]))["scope"] == "a b"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"user": "ada", "scopes": "a"}, 400),
        ({"user": "ada", "scopes": [1]}, 400),
        ({"user": "a\nb"}, 422),
        ({"user": "ada", "scopes": ["a b"]}, 422),
        ({"user": "ada", "scopes": ["a"]}, 200),
    ],
)
def test_the_console_issues_tokens_for_valid_users_and_scopes(app, body, status):
    url = f"{app.console_url}console/api/tokens"
    assert httpx2.post(url, json=body, headers={"x-console": "1"}).status_code == status
