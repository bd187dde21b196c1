"""Principals from authorizer contexts, as API Gateway puts them into payload 2.0 events."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.auth import Authenticator, AuthMode, Unauthorized
from mcp_roundtrip.principal import Principal

JWT = {"jwt": {"claims": {"iss": "https://idp.test/", "sub": "alice", "client_id": "app"}, "scopes": None}}
IAM = {
    "iam": {"accountId": "123456789012", "userId": "AROAEXAMPLE:session-1", "userArn": "arn:aws:sts::1:x/y/z"}
}
LAMBDA = {"lambda": {"user": "alice", "other": "x"}}


def test_a_jwt_principal_is_issuer_subject_and_client() -> None:
    principal = Authenticator(AuthMode.JWT).principal(JWT)
    assert principal == Principal("jwt", "alice", "https://idp.test/", "app")


def test_the_azp_claim_names_the_client_where_client_id_does_not() -> None:
    claims = {"iss": "i", "sub": "s", "azp": "app"}
    principal = Authenticator(AuthMode.JWT).principal({"jwt": {"claims": claims}})
    assert principal == Principal("jwt", "s", "i", "app")


def test_an_iam_principal_is_the_role_without_its_session() -> None:
    one = Authenticator(AuthMode.IAM).principal(IAM)
    other = Authenticator(AuthMode.IAM).principal({"iam": {**IAM["iam"], "userId": "AROAEXAMPLE:session-2"}})
    assert one == other == Principal("iam", "AROAEXAMPLE", "123456789012")


def test_a_lambda_principal_is_the_configured_member() -> None:
    assert Authenticator(AuthMode.LAMBDA, "user").principal(LAMBDA) == Principal("lambda", "alice")


def test_only_a_deployment_that_says_so_lets_anonymous_callers_in() -> None:
    assert Authenticator(AuthMode.NONE).principal({}) is None
    assert Authenticator(AuthMode.NONE).principal(JWT) is None


@pytest.mark.parametrize(
    ("authenticator", "context"),
    [
        (Authenticator(AuthMode.JWT), {}),
        (Authenticator(AuthMode.JWT), {"jwt": None}),
        (Authenticator(AuthMode.JWT), {"jwt": {}}),
        (Authenticator(AuthMode.JWT), {"jwt": {"claims": {"iss": "i"}}}),
        (Authenticator(AuthMode.JWT), {"jwt": {"claims": {"sub": "s"}}}),
        (Authenticator(AuthMode.JWT), {"jwt": {"claims": {"iss": "i", "sub": ""}}}),
        (Authenticator(AuthMode.JWT), IAM),
        (Authenticator(AuthMode.IAM), JWT),
        (Authenticator(AuthMode.IAM), {"iam": {"accountId": "1"}}),
        (Authenticator(AuthMode.LAMBDA, "user"), {"lambda": {"sub": "alice"}}),
        (Authenticator(AuthMode.LAMBDA, "user"), {"lambda": {"user": 7}}),
        (Authenticator(AuthMode.LAMBDA), LAMBDA),
    ],
)
def test_a_missing_principal_is_refused(authenticator: Authenticator, context: dict[str, Any]) -> None:
    with pytest.raises(Unauthorized):
        authenticator.principal(context)


def test_principals_that_differ_in_anything_are_spelled_differently() -> None:
    principals = [
        Principal("jwt", "a", "i", "c"),
        Principal("jwt", "a", "i", None),
        Principal("jwt", "a", None, "i"),
        Principal("jwt", "i", "a", "c"),
        Principal("iam", "a", "i", "c"),
        Principal("jwt", 'a","i', "", None),
    ]
    assert len({principal.canonical() for principal in principals}) == len(principals)
