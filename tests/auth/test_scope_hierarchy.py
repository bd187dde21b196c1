"""Granted and implied scopes, and scopes with the prefix of the authorization server."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.callers import AuthMode, Caller
from mcp_roundtrip.auth.scope_hierarchy import ScopeHierarchy, validate_scopes, with_prefix
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.http import HttpRequest
from mcp_roundtrip.server.admission import identify
from support.token_issuer import ISSUER

DATABASE = ScopeHierarchy.from_direct({"admin": ["write", "billing"], "write": ["read"]})

NAMES = st.sampled_from([f"s{number}" for number in range(8)])
GRANTED = st.frozensets(NAMES)
# Edges lead only from lower to higher numbers, so there are no cycles.
HIERARCHIES = st.dictionaries(NAMES, st.lists(NAMES, max_size=4)).map(
    lambda drawn: {name: [each for each in narrower if each > name] for name, narrower in drawn.items()}
)


@pytest.mark.parametrize(
    "hierarchy",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["a"]},
        {"a": ["b"], "b": ["c"], "c": ["d", "b"]},
        {"a": "b"},
        {"a": ["b c"]},
        {"a b": ["c"]},
        {"": ["c"]},
        {"a": ['b"']},
        {"a": ["b\\"]},
        {"a": ["é"]},
        {"a": ["b\n"]},
        {"a": ["x" * 257]},
        {"a": [7]},
        {"a": ["offline_access"]},
        {"offline_access": ["a"]},
    ],
)
def test_a_malformed_hierarchy_is_refused(hierarchy):
    with pytest.raises(DefinitionError):
        ScopeHierarchy.from_direct(hierarchy)


@pytest.mark.parametrize("given_scopes", ["read", ["read write"], [None], [""]])
def test_scopes_keep_their_order_without_duplicates_and_a_malformed_list_is_refused(given_scopes):
    assert validate_scopes(["b", "a", "b"]) == ("b", "a")
    with pytest.raises(DefinitionError):
        validate_scopes(given_scopes)


def test_the_narrowest_scopes_do_not_imply_each_other():
    assert DATABASE.narrowest(["admin", "write", "read"]) == ("read",)
    assert DATABASE.narrowest(["admin", "other"]) == ("admin", "other")


def reachable(hierarchy: Mapping[str, Sequence[str]], granted: frozenset[str]) -> frozenset[str]:
    """Compute the reachable scopes by brute force."""
    further = granted.union(*(hierarchy.get(scope, ()) for scope in granted))
    return granted if further == granted else reachable(hierarchy, further)


@given(HIERARCHIES, GRANTED)
def test_implied_scopes_are_the_reachable_ones(hierarchy, granted):
    assert ScopeHierarchy.from_direct(hierarchy).expand(granted) == reachable(hierarchy, granted)


AUDIENCE = "https://mcp.test/mcp"


def caller(scope: str, *, prefix: str, mode: AuthMode = AuthMode.JWT) -> Caller:
    """Return the caller with these scopes, as a deployment with this prefix identifies it."""
    contexts = {
        "jwt": {"claims": {"iss": ISSUER, "sub": "alice", "scope": scope}},
        "lambda": {"user": "a", "s": scope},
    }
    of_lambda = {"MCP_PRINCIPAL_CONTEXT_KEY": "user", "MCP_SCOPE_CONTEXT_KEY": "s"}
    given = {"MCP_AUTH_MODE": mode.value, "MCP_AUDIENCE": AUDIENCE, "MCP_SCOPE_PREFIX": prefix}
    settings = load_settings({**given, **(of_lambda if mode is AuthMode.LAMBDA else {})})
    return identify(HttpRequest("POST", {}, None, contexts), wiring.make_ports(settings))


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
def test_the_prefix_is_removed_from_scopes_that_have_it(mode, prefix, scope, granted):
    found = caller(scope, prefix=prefix, mode=mode)
    assert found.scopes == granted
    assert found.principal == caller("read", prefix="", mode=mode).principal
    assert with_prefix(["openid", "read"], prefix) == ["openid", f"{prefix}read"]


def test_a_prefix_with_the_audience_needs_the_audience():
    with pytest.raises(SettingsError, match="MCP_AUDIENCE"):
        load_settings({"MCP_AUTH_MODE": "jwt", "MCP_SCOPE_PREFIX": "{audience}/", "MCP_TASK_TABLE": "t"})
