"""Links for URL elicitation: for whom, where and when they open."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.kms import MAX_RAW_BYTES
from mcp_roundtrip.errors import StateRejected, UsageError
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.jws import LocalKey
from mcp_roundtrip.state.url_elicitation_links import MAX_LINK_LENGTH, Link
from support import tokens

MALLORY = tokens.ALICE.replace("alice", "mallory")


def link(*, principal=tokens.ALICE, key="connect", flow_id="f-1", expires_at=tokens.NOW + 600):
    return tokens.links().sign(principal, key, flow_id, expires_at)


def opened(token, *, principal=tokens.ALICE, now=tokens.NOW, **deployment):
    return tokens.links(now, **deployment).open(principal, token)


def refusal(token, **where):
    with pytest.raises(StateRejected) as refused:
        opened(token, **where)
    return refused.value.reason


@pytest.mark.parametrize("visitor", [MALLORY, "", None])
def test_a_link_opens_for_its_user_and_is_refused_for_every_other_principal(visitor):
    assert opened(link()) == Link("connect", "f-1", tokens.NOW + 600)
    assert refusal(link(), principal=visitor) == "wrong_principal"


OTHER_PLACES_AND_TIMES = {
    "another deployment": ({"issuer": "other"}, "wrong_issuer"),
    "another endpoint": ({"audience": "https://other.example/mcp"}, "wrong_audience"),
    "at its end": ({"now": tokens.NOW + 600}, "expired"),
    "before it was made": ({"now": tokens.NOW - 6}, "not_yet_valid"),
    "without our key": ({"keys": LocalKey.generate()}, "unknown_key"),
}


@pytest.mark.parametrize(("where", "reason"), OTHER_PLACES_AND_TIMES.values(), ids=OTHER_PLACES_AND_TIMES)
def test_a_link_is_refused_in_another_deployment_at_another_endpoint_and_outside_its_lifetime(where, reason):
    assert refusal(link(), **where) == reason


FORGERIES = {
    "a requestState": (tokens.sealed({"key": "connect"}), "header"),
    "a requestState in a link's type": (tokens.with_header(tokens.sealed(), typ="mcp-link+jwt"), "claims"),
    "another key": (tokens.with_claims(link(), key=5), "claims"),
    "no principal": (tokens.without_claim(link(), "sub"), "claims"),
    "a further claim": (tokens.with_claims(link(), st={}), "claims"),
    "padding": (link() + "=", "malformed"),
    "none": (None, "not_a_string"),
    "too long": ("A" * (MAX_LINK_LENGTH + 1), "too_long"),
}


@pytest.mark.parametrize(("token", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_link_is_refused(token, reason):
    assert refusal(token) == reason


@given(st.text(max_size=100), st.text(max_size=100))
def test_a_key_and_a_flow_id_round_trip(key, flow_id):
    assert opened(link(key=key, flow_id=flow_id)) == Link(key, flow_id, tokens.NOW + 600)


def test_a_link_is_short_holds_no_personal_data_and_needs_no_escaping():
    token = link()
    assert "alice" not in json.dumps(tokens.claims_of(token))
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
    assert opened(link(key="\U0010ffff" * 100, flow_id="\U0010ffff" * 100))
    assert MAX_LINK_LENGTH <= MAX_RAW_BYTES, "the size that KMS signs raw"


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": None},
        {"principal": ""},
        {"expires_at": tokens.NOW},
        {"key": "x" * 3000},
        {"flow_id": "x" * 3000},
    ],
)
def test_an_anonymous_caller_gets_no_link(wrong):
    with pytest.raises(UsageError):
        link(**wrong)


def test_an_unexpected_error_refuses_a_link_and_a_key_service_error_is_raised():
    assert refusal(link(), keys=tokens.FailingKeys(LookupError())) == "unexpected_LookupError"
    with pytest.raises(KeyServiceError):
        opened(link(), keys=tokens.FailingKeys(KeyServiceError("timeout")))
