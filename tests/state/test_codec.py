"""`requestState` sealed and opened as intended; what happens to everything else is in test_attacks."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state.claims import Limits, OpenState
from support.tokens import (
    BINDING,
    CONFIGURATIONS,
    EPOCH,
    KEY,
    MAC,
    NOW,
    claims_of,
    codec,
    decrypted,
    epoch_secret,
    header_of,
    sealed,
    with_header,
)

TOKEN = sealed({"answers": {"size": {"vcpus": 2}}})

everywhere = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)


def refusal(token, *, binding=BINDING, now=NOW, limits=None, keys=KEY):
    with pytest.raises(StateRejected) as refused:
        codec(now, limits=limits, keys=keys).open(binding, token)
    return refused.value.reason


def test_missing_arguments_and_none_are_the_same_request():
    token = sealed(binding=replace(BINDING, arguments=None))
    assert codec().open(replace(BINDING, arguments={}), token).round == 1


def test_a_token_of_an_anonymous_caller_has_no_sub_and_is_accepted_without_a_principal():
    anonymous = replace(BINDING, principal=None)
    token = sealed(7, binding=anonymous)
    assert "sub" not in claims_of(token)
    assert codec().open(anonymous, token).payload == 7


def test_a_token_opens_to_what_was_sealed():
    token = codec(NOW + 100).seal(BINDING, {"a": [1]}, round=3, first_issued_at=NOW)
    assert codec(NOW + 101).open(BINDING, token) == OpenState({"a": [1]}, 3, NOW)


def test_the_first_round_starts_the_flow():
    assert codec(NOW + 0.9).open(BINDING, sealed(now=NOW + 0.9)).first_issued_at == NOW


def test_a_flow_cannot_be_renewed_past_its_end():
    last = codec(NOW + 3599).seal(BINDING, None, round=9, first_issued_at=NOW)
    assert claims_of(last)["exp"] == NOW + 3600
    with pytest.raises(StateRejected) as refused:
        codec(NOW + 3600).seal(BINDING, None, round=10, first_issued_at=NOW)
    assert refused.value.reason == "flow_expired"


def test_a_shorter_flow_limit_counts_for_tokens_minted_before_it():
    token = codec(NOW + 100).seal(BINDING, None, round=2, first_issued_at=NOW)
    assert refusal(token, now=NOW + 100, limits=Limits(flow_ttl_s=100)) == "flow_expired"


def test_a_clock_behind_the_flows_first_continues_the_flow():
    opened = codec(NOW - 4).open(BINDING, sealed())
    token = codec(NOW - 4).seal(BINDING, None, round=2, first_issued_at=opened.first_issued_at)
    assert codec(NOW - 4).open(BINDING, token).first_issued_at == NOW


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@everywhere
@given(payload=JSON, number=st.integers(0, 50))
def test_any_sealed_payload_is_opened_the_same_elsewhere(configuration, payload, number):
    token = configuration.codec().seal(BINDING, payload, round=number, first_issued_at=None)
    assert configuration.codec().open(BINDING, token) == OpenState(payload, number, NOW)


@everywhere
def test_a_state_has_these_layers(configuration):
    token = configuration.codec().seal(BINDING, None, round=1, first_issued_at=None)
    if configuration.encrypted:
        kid = f"{MAC.short_key_id}.{EPOCH}"
        outer = {"alg": "dir", "cty": "JWT", "enc": "A256GCM", "kid": kid, "typ": "mcp-rs+jwt"}
        assert header_of(token) == outer
        token = decrypted(token, epoch_secret(EPOCH))
    key = {"crt": header_of(token).get("crt")} if configuration.delegated else {"kid": KEY.kid}
    assert header_of(token) == {"alg": "ES256", **key, "typ": "mcp-rs+jwt"}


def test_arguments_that_no_json_holds_open_nothing():
    assert refusal(TOKEN, binding=replace(BINDING, arguments={"x": float("nan")})) == "unexpected_ValueError"


class Unused:
    """A signer that must not be asked."""

    def __init__(self, key_members):
        self.key_members = key_members

    def sign(self, signing_input):
        raise AssertionError("signed")


@everywhere
@given(size=st.integers(0, 5000))
def test_a_token_may_be_as_long_as_the_limit_and_a_longer_one_is_never_signed(configuration, size):
    one = configuration.codec()
    unused = Unused(one.signer().key_members)
    token = one.seal(BINDING, "x" * size, round=1, first_issued_at=None)
    exact, short = (Limits(max_minted=limit) for limit in (len(token), len(token) - 1))
    assert replace(one, limits=exact).seal(BINDING, "x" * size, round=1, first_issued_at=None)
    with pytest.raises(StateTooLarge) as refused:
        replace(one, limits=short, signer=lambda: unused).seal(
            BINDING, "x" * size, round=1, first_issued_at=None
        )
    assert (refused.value.size, refused.value.limit) == (len(token), len(token) - 1)


def test_a_token_names_neither_the_principal_nor_the_arguments():
    claims = json.dumps(claims_of(sealed()))
    assert "alice" not in claims
    assert "id.example" not in claims
    assert "vcpus" not in claims


def test_two_tokens_of_one_principal_do_not_show_it():
    assert claims_of(sealed())["sub"] != claims_of(sealed())["sub"]


class Broken:
    """Keys that raise `error`, as a key service that fails would."""

    def __init__(self, error):
        self.error = error

    def find(self, kid):
        raise self.error


def test_without_any_key_the_key_service_is_to_blame_and_not_the_token():
    with pytest.raises(KeyServiceError):
        codec(keys=Broken(KeyServiceError("timeout"))).open(BINDING, TOKEN)


@pytest.mark.parametrize("error", [KeyError("secret"), RecursionError(), MemoryError(), AttributeError()])
def test_any_unforeseen_error_refuses_the_token(error):
    assert refusal(TOKEN, keys=Broken(error)) == f"unexpected_{type(error).__name__}"


def test_a_malformed_token_is_refused_before_any_key_is_looked_up():
    keys = Broken(AssertionError("looked up"))
    for token in ("", "a.b.c", TOKEN + "=", with_header(TOKEN, typ="JWT"), with_header(TOKEN, alg="none")):
        assert refusal(token, keys=keys) in {"malformed", "header"}
