"""The options and the tokens of the local issuer of `make run`. auth/test_flow.py signs in at it."""

from typing import Any

import httpx2
import jwt
import pytest

from mcp_roundtrip_tools.run.issuer.issuer import DEFAULT_USERS, User, read_users
from mcp_roundtrip_tools.template.model import TemplateError
from support.served_application import FRONT_DOOR, TEMPLATE, serve


@pytest.fixture(scope="module")
def app():
    users = (User("ada", frozenset({"weather:read"})), User("bob"))
    with serve(TEMPLATE, users=users) as running:
        yield running


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def test_a_token_has_the_claims_of_rfc_9068(app):
    issuer = app.issuer
    token = issuer.token("ada")
    assert jwt.get_unverified_header(token)["typ"] == "at+jwt"
    claims = claims_of(token)
    assert {"iss", "exp", "aud", "sub", "client_id", "iat", "jti", "scope"} == claims.keys()
    assert (claims["iss"], claims["aud"], claims["sub"]) == (issuer.url, app.url(FRONT_DOOR), "ada")
    assert (claims["scope"], claims["exp"] - claims["iat"]) == ("weather:read", 86_400)
    assert claims_of(issuer.token("bob", ["b", "a"]))["scope"] == "a b"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"user": "a\nb"}, 422),
        ({"user": "ada", "scopes": ["a b"]}, 422),
        ({"user": "ada", "scopes": ["a"]}, 200),
    ],
)
def test_the_console_issues_tokens_for_valid_users_and_scopes(app, body, status):
    url = f"{app.console_url}console/api/tokens"
    assert httpx2.post(url, json=body, headers={"x-console": "1"}).status_code == status


def test_users_and_their_scopes_are_separated_by_spaces():
    scopes = frozenset({"weather:read", "db:read"})
    assert read_users("ada bob", "weather:read db:read", {}) == (User("ada", scopes), User("bob", scopes))
    assert read_users("ada,ada", None, {"AuthMode": "bearer"}) == (User("ada"),)
    assert read_users(None, "", {}) == tuple(User(each.name, frozenset()) for each in DEFAULT_USERS)


def test_the_issuer_also_runs_for_bearer_without_an_issuer():
    assert read_users(None, None, {"AuthMode": "bearer"}) == DEFAULT_USERS
    for parameters in ({}, {"AuthMode": "none"}, {"AuthMode": "bearer", "TokenIssuer": "http://127.0.0.1:9"}):
        assert read_users(None, None, parameters) is None


@pytest.mark.parametrize(
    ("names", "scopes", "parameters", "reason"),
    [
        ("ada", None, {"AuthMode": "none"}, "AuthMode none"),
        ("ada", None, {"TokenIssuer": "http://127.0.0.1:9"}, "TokenIssuer"),
        ("ada", 'a"b', {}, "is no scope"),
        ("\x7f", None, {}, "1 to 128"),
    ],
)
def test_options_that_contradict_each_other_are_refused(names, scopes, parameters, reason):
    with pytest.raises(TemplateError, match=reason):
        read_users(names, scopes, parameters)
