"""The options of `make run` for the local issuer."""

import pytest

from mcp_roundtrip_tools.run.issuer.issuer import DEFAULT_USERS, User, read_users
from mcp_roundtrip_tools.template.model import TemplateError


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
        ("ada", None, {"AuthMode": "none"}, "leave out AuthMode none"),
        ("ada", None, {"TokenIssuer": "http://127.0.0.1:9"}, "leave out TokenIssuer"),
        ("ada", 'a"b', {}, "is no scope"),
        ("\x7f", None, {}, "name of a user"),
    ],
)
def test_options_that_contradict_each_other_are_refused(names, scopes, parameters, reason):
    with pytest.raises(TemplateError, match=reason):
        read_users(names, scopes, parameters)
