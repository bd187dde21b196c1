"""Valid `requestState` tokens. test_attacks covers invalid ones."""

import json
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state.claims import Limits, OpenState
from support.json_values import any_json
from support.tokens import (
    BINDING,
    CONFIGURATIONS,
    EPOCH,
    KEY,
    MAC,
    NOW,
    FailingKeys,
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


FLOW_END = NOW + Limits().flow_ttl_s + Limits().skew_s


def test_the_first_round_starts_the_flow_which_later_ones_keep():
    assert codec(NOW + 0.9).open(BINDING, sealed(now=NOW + 0.9)).first_issued_at == NOW
    token = codec(NOW + 100).seal(BINDING, {"a": [1]}, round=3, first_issued_at=NOW)
    assert codec(NOW + 101).open(BINDING, token) == OpenState({"a": [1]}, 3, NOW, FLOW_END)


def test_a_state_may_be_deeper_than_a_request():
    deep = json.loads("[" * 100 + "]" * 100)
    assert codec().open(BINDING, sealed(deep)).payload == deep


def test_a_reduced_flow_limit_applies_to_tokens_minted_earlier():
    token = codec(NOW + 100).seal(BINDING, None, round=2, first_issued_at=NOW)
    assert refusal(token, now=NOW + 100, limits=Limits(flow_ttl_s=100)) == "flow_expired"


def test_a_flow_continues_on_a_host_whose_clock_is_behind():
    opened = codec(NOW - 4).open(BINDING, sealed())
    token = codec(NOW - 4).seal(BINDING, None, round=2, first_issued_at=opened.first_issued_at)
    assert codec(NOW - 4).open(BINDING, token).first_issued_at == NOW


@everywhere
@given(payload=any_json(st.text(), finite=True), number=st.integers(0, 50))
def test_any_sealed_payload_is_opened_unchanged_in_another_environment(configuration, payload, number):
    token = configuration.codec().seal(BINDING, payload, round=number, first_issued_at=None)
    assert configuration.codec().open(BINDING, token) == OpenState(payload, number, NOW, FLOW_END)


@everywhere
def test_a_state_has_the_layers_of_its_configuration(configuration):
    token = configuration.codec().seal(BINDING, None, round=1, first_issued_at=None)
    if configuration.encrypted:
        kid = f"{MAC.short_key_id}.{EPOCH}"
        outer = {"alg": "dir", "cty": "JWT", "enc": "A256GCM", "kid": kid, "typ": "mcp-rs+jwt"}
        assert header_of(token) == outer
        token = decrypted(token, epoch_secret(EPOCH))
    key = {"crt": header_of(token).get("crt")} if configuration.delegated else {"kid": KEY.kid}
    assert header_of(token) == {"alg": "ES256", **key, "typ": "mcp-rs+jwt"}


@everywhere
@given(size=st.integers(0, 5000))
def test_a_token_up_to_the_limit_is_signed_and_a_longer_one_is_not(configuration, size):
    one = configuration.codec()
    unused = Mock(key_members=one.signer().key_members)

    def seal(codec, payload="x" * size):
        return codec.seal(BINDING, payload, round=1, first_issued_at=None)

    length = len(seal(one))
    assert seal(replace(one, limits=Limits(max_minted=length)))
    with pytest.raises(StateTooLarge) as refused:
        seal(replace(one, limits=Limits(max_minted=length - 1), signer=lambda: unused))
    assert (refused.value.size, refused.value.limit) == (length, length - 1)
    unused.sign.assert_not_called()


def test_a_token_contains_neither_principal_nor_arguments_and_cannot_be_linked():
    claims = json.dumps(claims_of(sealed()))
    assert "alice" not in claims
    assert "id.example" not in claims
    assert "vcpus" not in claims
    assert claims_of(sealed())["sub"] != claims_of(sealed())["sub"]


def test_an_unavailable_key_is_a_key_service_error_and_not_an_invalid_token():
    with pytest.raises(KeyServiceError):
        codec(keys=FailingKeys(KeyServiceError("timeout"))).open(BINDING, TOKEN)


@pytest.mark.parametrize("error", [KeyError("secret"), RecursionError(), MemoryError(), AttributeError()])
def test_an_unexpected_error_refuses_the_token(error):
    assert refusal(TOKEN, keys=FailingKeys(error)) == f"unexpected_{type(error).__name__}"


def test_a_malformed_token_is_refused_before_any_key_is_looked_up():
    keys = FailingKeys(AssertionError("looked up"))
    for token in ("", "a.b.c", TOKEN + "=", with_header(TOKEN, typ="JWT"), with_header(TOKEN, alg="none")):
        assert refusal(token, keys=keys) in {"malformed", "header"}
