"""Scopes of tokens with and without the prefix of the authorization server."""

from __future__ import annotations

import pytest

from mcp_roundtrip.auth.callers import AuthMode, Caller
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.internal_errors import SettingsError
from support.token_issuer import ISSUER

AUDIENCE = "https://mcp.test/mcp"


def caller(scope: str, *, prefix: str, mode: AuthMode = AuthMode.JWT) -> Caller:
    """Return the caller with these scopes, as a deployment with this prefix identifies it."""
    contexts = {
        "jwt": {"claims": {"iss": ISSUER, "sub": "alice", "scope": scope}},
        "lambda": {"user": "a", "s": scope},
    }
    of_lambda = {"MCP_PRINCIPAL_CONTEXT_KEY": "user", "MCP_SCOPE_CONTEXT_KEY": "s"}
    environment = {
        "MCP_AUTH_MODE": mode.value,
        "MCP_AUDIENCE": AUDIENCE,
        "MCP_SCOPE_PREFIX": prefix,
        **(of_lambda if mode is AuthMode.LAMBDA else {}),
    }
    config = wiring.make_ports(load_settings(environment)).config
    return config.authenticator.authenticate({}, contexts)


@pytest.mark.parametrize("mode", [AuthMode.JWT, AuthMode.LAMBDA])
@pytest.mark.parametrize(
    ("prefix", "scope", "granted"),
    [
        ("api://orders/", "read write", {"read", "write"}),
        ("api://orders/", "api://orders/read openid", {"read", "openid"}),
        ("api://orders/", "api://other/read", {"api://other/read"}),
        ("api://orders/", "api://orders/api://orders/read", {"api://orders/read"}),
        ("{audience}/", f"{AUDIENCE}/read", {"read"}),
        ("{audience}/", "{audience}/read", {"{audience}/read"}),
        ("", f"{AUDIENCE}/read", {f"{AUDIENCE}/read"}),
    ],
)
def test_the_prefix_is_removed_from_scopes_that_have_it(
    mode: AuthMode, prefix: str, scope: str, granted: set[str]
) -> None:
    assert caller(scope, prefix=prefix, mode=mode).scopes == granted


def test_the_principal_does_not_depend_on_the_prefix() -> None:
    assert caller("read", prefix="api/").principal == caller("read", prefix="").principal


def test_a_prefix_with_the_audience_needs_the_audience() -> None:
    settings = load_settings(
        {"MCP_AUTH_MODE": "jwt", "MCP_SCOPE_PREFIX": "{audience}/", "MCP_TASK_TABLE": "t"}
    )
    with pytest.raises(SettingsError, match="MCP_AUDIENCE"):
        wiring.make_ports(settings)
