"""Principals from the authorizer contexts of payload 2.0 events."""

from typing import Any

import pytest

from mcp_roundtrip.auth.callers import (
    ANONYMOUS,
    AuthMode,
    Caller,
    EventAuthenticator,
    Principal,
    Unauthorized,
)

JWT = {"jwt": {"claims": {"iss": "https://idp.test/", "sub": "alice", "client_id": "app"}, "scopes": None}}
IAM = {
    "iam": {"accountId": "123456789012", "userId": "AROAEXAMPLE:session-1", "userArn": "arn:aws:sts::1:x/y/z"}
}
LAMBDA = {"lambda": {"user": "alice", "other": "x"}}


def identify(mode: AuthMode, context: Any, user: str = "principalId", scopes: str | None = None) -> Caller:
    """Identify the caller; `user` and `scopes` are keys in the context of a Lambda authorizer."""
    return EventAuthenticator(mode, user, scopes).authenticate({}, context)


def test_a_jwt_principal_is_issuer_subject_and_client():
    assert identify(AuthMode.JWT, JWT).principal == Principal("jwt", "alice", "https://idp.test/", "app")
    claims = {"iss": "i", "sub": "s", "azp": "app"}
    assert identify(AuthMode.JWT, {"jwt": {"claims": claims}}).principal == Principal("jwt", "s", "i", "app")


def test_a_lambda_principal_and_its_scopes_are_the_configured_members():
    assert identify(AuthMode.LAMBDA, LAMBDA, "user").principal == Principal("lambda", "alice")
    context = {"lambda": {"user": "alice", "granted": "a b"}}
    assert identify(AuthMode.LAMBDA, context, "user", "granted").scopes == {"a", "b"}
    assert not identify(AuthMode.LAMBDA, context, "user").scopes


def iam(user_id: str, *, binds_sessions: bool = False, **context: Any) -> Principal | None:
    authenticator = EventAuthenticator(AuthMode.IAM, binds_sessions=binds_sessions)
    return authenticator.authenticate({}, {"iam": {**IAM["iam"], "userId": user_id, **context}}).principal


def test_federated_users_and_root_are_different_callers():
    """GetFederationToken: `userId` is `<account id>:<name>`."""
    users = ["123456789012:ada", "123456789012:bob", "123456789012", "AIDAEXAMPLE"]
    assert [iam(user) for user in users] == [Principal("iam", user, "123456789012") for user in users]


def test_sessions_of_a_role_are_different_callers_if_the_deployment_binds_sessions():
    one, other = "AROAEXAMPLE:one", "AROAEXAMPLE:other"
    assert iam(one) == iam(other) == Principal("iam", "AROAEXAMPLE", "123456789012")
    assert iam(one, binds_sessions=True) == Principal("iam", one, "123456789012")
    assert iam(one, binds_sessions=True) != iam(other, binds_sessions=True)
    identity = {"identityId": "eu-west-1:alice"}
    for session in (one, other):
        of_pool = iam(session, binds_sessions=True, cognitoIdentity=identity)
        assert of_pool == Principal("iam", "eu-west-1:alice", "123456789012")


@pytest.mark.parametrize("user_id", [":session", "AROAEXAMPLE:", "123456789012:", ":", ""])
@pytest.mark.parametrize("binds_sessions", [True, False])
def test_an_incomplete_user_id_is_refused(user_id, binds_sessions):
    with pytest.raises(Unauthorized):
        iam(user_id, binds_sessions=binds_sessions)


def test_users_of_an_identity_pool_with_one_role_are_different_callers():
    def principal(identity: Any) -> Principal | None:
        return iam("AROAEXAMPLE:session-1", cognitoIdentity=identity)

    alice = {"amr": ["authenticated"], "identityId": "eu-west-1:alice", "identityPoolId": "eu-west-1:pool"}
    assert principal(alice) == Principal("iam", "eu-west-1:alice", "123456789012")
    assert principal({**alice, "identityId": "eu-west-1:bob"}) != principal(alice)
    assert principal(None) == Principal("iam", "AROAEXAMPLE", "123456789012")
    for half_filled in ({}, {**alice, "identityId": None}):
        with pytest.raises(Unauthorized):
            principal(half_filled)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "db:read db:write"}, {"db:read", "db:write"}),
        ({"scp": "[db:read]"}, {"db:read"}),
        ({"scp": "[]"}, set()),
        ({"scopes": "db:read"}, {"db:read"}),
        ({"scope": "db:read", "scp": "[db:write]"}, {"db:read"}),
        ({"scp": ["db:read", "db:write"]}, {"db:read", "db:write"}),
        ({"scope": "[ db:read"}, {"[", "db:read"}),
        ({"scope": None, "scp": "db:write"}, set()),
        ({}, set()),
    ],
)
def test_scopes_are_read_from_claims_in_the_format_of_http_apis(claims, scopes):
    context = {"jwt": {"claims": {"iss": "i", "sub": "s", **claims}, "scopes": ["of the route"]}}
    assert identify(AuthMode.JWT, context).scopes == scopes


@pytest.mark.parametrize("claim", ["scope", "scp", "scopes"])
@pytest.mark.parametrize(
    "members", [["read admin"], ["read", "admin"], [" admin"], ["admin "], ["", "admin"]]
)
def test_a_joined_list_of_scopes_grants_no_scope(claim, members):
    """An HTTP API turns `["read admin"]` and `["read", "admin"]` into the same string."""
    joined = f"[{' '.join(members)}]"
    for value in (joined, members[:1]):
        context = {"jwt": {"claims": {"iss": "i", "sub": "s", claim: value}}}
        granted = identify(AuthMode.JWT, context).scopes
        assert "admin" not in granted
        assert granted.isdisjoint({"read", ""}) or members[0] == "read" == value[0]


@pytest.mark.parametrize("claim", ["cnf", "events", "at_hash", "c_hash", "s_hash"])
@pytest.mark.parametrize("value", ["map[jkt:0ZcOCORZNYy]", "{}", ""])
def test_a_token_that_is_not_an_access_token_is_refused_behind_an_authorizer(claim, value):
    claims: Any = JWT["jwt"]["claims"]
    context = {"jwt": {"claims": {**claims, claim: value}}}
    with pytest.raises(Unauthorized) as refused:
        identify(AuthMode.JWT, context)
    assert refused.value.error == "invalid_token"


def test_no_header_identifies_a_caller_and_anonymous_ones_are_accepted_only_if_allowed():
    headers = {"authorization": "Bearer x", "x-amzn-oidc-data": "x", "x-user": "alice"}
    assert EventAuthenticator(AuthMode.NONE).authenticate(headers, JWT) is ANONYMOUS
    assert identify(AuthMode.NONE, {}).principal is None
    for mode in (AuthMode.JWT, AuthMode.LAMBDA, AuthMode.IAM, AuthMode.BEARER):
        with pytest.raises(Unauthorized):
            EventAuthenticator(mode, "x-user").authenticate(headers, {})


@pytest.mark.parametrize(
    ("mode", "context"),
    [
        (AuthMode.JWT, {}),
        (AuthMode.JWT, IAM),
        (AuthMode.JWT, LAMBDA),
        (AuthMode.JWT, {"jwt": None}),
        (AuthMode.JWT, {"jwt": {}}),
        *(
            (AuthMode.JWT, {"jwt": {"claims": claims}})
            for claims in (
                {"iss": "i"},
                {"sub": "s"},
                {"iss": "i", "sub": ""},
                {"iss": "i", "sub": ["s"]},
                [["iss", "i"], ["sub", "s"]],
            )
        ),
        (AuthMode.JWT, {"claims": {"iss": "i", "sub": "s"}}),
        (AuthMode.IAM, JWT),
        (AuthMode.IAM, LAMBDA),
        *(
            (AuthMode.IAM, {"iam": iam})
            for iam in (
                {"accountId": "1"},
                {"userId": "AROAEXAMPLE:session"},
                {"accountId": "1", "userId": ":session"},
                {"accountId": 1, "userId": "AROAEXAMPLE:session"},
            )
        ),
        (AuthMode.LAMBDA, JWT),
        (AuthMode.LAMBDA, IAM),
        *(
            (AuthMode.LAMBDA, {"lambda": given})
            for given in (None, {"user": ""}, {"user": 7}, {"sub": "alice"})
        ),
        (AuthMode.LAMBDA, {"user": "alice"}),
    ],
)
def test_a_missing_principal_is_refused(mode, context):
    with pytest.raises(Unauthorized):
        identify(mode, context, "user")
    with pytest.raises(Unauthorized):
        identify(AuthMode.LAMBDA, LAMBDA)  # without the default member


def test_different_principals_have_different_identities():
    principals = [
        Principal("jwt", "a", "i", "c"),
        Principal("jwt", "a", "i", None),
        Principal("jwt", "a", None, "i"),
        Principal("jwt", "i", "a", "c"),
        Principal("iam", "a", "i", "c"),
        Principal("jwt", 'a","i', "", None),
    ]
    assert len({principal.canonical() for principal in principals}) == len(principals)
