"""Attacks on `requestState` in every configuration. `support.attacks_*` has the tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import claims
from support.attacks import CASES, TABLES
from support.attacks_certificate import CERTIFIED
from support.forgery import FORGES, PAYLOAD
from support.tokens import BINDING, CERTIFIED_UNTIL, CONFIGURATIONS, DELEGATED, KEY, NOW

REASONS = {
    *("not_a_string", "too_long", "malformed", "header", "unknown_key", "epoch", "decryption", "signature"),
    *("payload", "claims", "not_yet_valid", "expired", "lifetime", "flow_expired", "wrong_issuer"),
    *("wrong_audience", "wrong_request", "wrong_principal", "outlives_certificate"),
    *("certificate_not_a_string", "certificate_too_long", "certificate_malformed", "certificate_header"),
    *("certificate_unknown_key", "certificate_signature", "certificate_payload", "certificate_claims"),
    *("certificate_lifetime", "certificate_key", "certificate_not_yet_valid", "certificate_expired"),
    *("certificate_wrong_issuer", "certificate_wrong_audience", "certificate_revoked"),
}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

everywhere = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
where_delegated = pytest.mark.parametrize("configuration", DELEGATED, ids=str)


def refusal(one, token):
    """Return why the codec refuses the token: a fixed word that contains nothing of the token."""
    with pytest.raises(StateRejected) as refused:
        one.open(BINDING, token)
    assert refused.value.reason in REASONS
    return refused.value.reason


def substituted(token, position, character):
    return token[:position] + character + token[position + 1 :]


def result_of(attack, configuration):
    """Return why the codec refuses the token of the attack, or None."""
    try:
        attack.present(configuration)
    except StateRejected as refused:
        return refused.reason
    return None


def test_each_attack_has_the_result_in_its_table():
    ends = {name: result_of(attack, configuration) for name, (attack, configuration) in CASES.items()}
    assert ends == {name: attack.reason_on(configuration) for name, (attack, configuration) in CASES.items()}
    assert len(CASES) == sum(len(attack.on) for table in TABLES for attack in table.values()), "unique names"


def test_the_tables_cover_every_reason():
    assert {attack.reason_on(configuration) for attack, configuration in CASES.values()} == REASONS | {None}


def test_every_reason_is_documented():
    plain = {reason for reason in REASONS if not reason.startswith("certificate_")}
    assert [reason for reason in plain if f"`{reason}`" not in claims.__doc__] == []


@everywhere
def test_a_state_can_be_presented_again_until_it_expires(configuration):
    one = configuration.codec()
    states = [one.open(BINDING, FORGES[configuration].token) for _ in range(3)]
    assert [state.payload for state in states] == [PAYLOAD] * 3


@everywhere
def test_a_change_of_any_character_is_refused(configuration):
    one, token = configuration.codec(), FORGES[configuration].token
    for position, original in enumerate(token):
        index = ALPHABET.find(original)
        for step in (1, 32):
            refusal(one, substituted(token, position, ALPHABET[(index + step) % 64]))


@everywhere
def test_a_truncated_state_is_refused_at_every_length(configuration):
    one, token = configuration.codec(), FORGES[configuration].token
    for length in range(len(token)):
        assert refusal(one, token[:length]) in {"malformed", "decryption", "signature"}


@everywhere
@given(
    st.text()
    | st.binary()
    | st.none()
    | st.from_regex(r"[\w-]+\.[\w-]+\.[\w-]{86}", fullmatch=True)
    | st.from_regex(r"[\w-]+\.\.[\w-]{16}\.[\w-]+\.[\w-]{22}", fullmatch=True)
)
def test_arbitrary_text_is_refused_also_in_any_encryption(configuration, token):
    refusal(configuration.codec(), token)
    if configuration.encrypted and token is not None:
        refusal(configuration.codec(), FORGES[configuration].wrap(token))


@where_delegated
def test_a_cached_certificate_is_refused_after_it_expires(configuration):
    now = NOW + 1199
    token = FORGES[configuration].with_claims(iat=now - 599, nbf=now - 599, exp=CERTIFIED_UNTIL)
    one = configuration.codec(now)
    assert one.open(BINDING, token).payload == PAYLOAD
    assert refusal(replace(one, clock=lambda: CERTIFIED_UNTIL), token) == "certificate_expired"


class WithdrawableKey:
    """Trusts KEY until it is withdrawn."""

    is_withdrawn = False

    def find(self, kid):
        return None if self.is_withdrawn else KEY.find(kid)


@where_delegated
def test_a_cached_certificate_is_refused_after_its_root_key_is_withdrawn(configuration):
    keys, token = WithdrawableKey(), FORGES[configuration].token
    one = configuration.codec(keys=keys)
    assert one.open(BINDING, token).payload == PAYLOAD
    keys.is_withdrawn = True
    assert refusal(one, token) == "certificate_unknown_key"


@where_delegated
def test_a_cached_certificate_is_refused_after_its_revocation(configuration):
    one = configuration.codec(revoked={CERTIFIED["jti"]})
    assert [refusal(one, FORGES[configuration].token) for _ in range(3)] == ["certificate_revoked"] * 3
