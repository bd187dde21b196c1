"""Certificates and the keys that they certify. test_attacks has the refused ones."""

import pytest

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import certificates
from mcp_roundtrip.state.certificates import CERTIFICATE_TYP, LIFETIME_S, MAX_CERTIFICATE_LENGTH, TrustedKeys
from mcp_roundtrip.state.keys import LocalKey
from support.tokens import BINDING, KEY, NOW, claims_of, header_of


def certificate(leaf=None, *, jti="0" * 32, issued_at=NOW):
    public_key = (leaf or LocalKey.generate()).public_key
    return certificates.issue(
        KEY, public_key, issuer=BINDING.issuer, audience=BINDING.audience, issued_at=issued_at, jti=jti
    )


def trusted(trust, crt, now=NOW):
    return trust.find({"crt": crt}, issuer=BINDING.issuer, audience=BINDING.audience, now=now, skew_s=5)


def test_a_certificate_says_which_key_signs_for_whom_and_until_when():
    token = certificate(jti="f" * 32)
    claims = claims_of(token)
    assert header_of(token) == {"alg": "ES256", "kid": KEY.kid, "typ": CERTIFICATE_TYP}
    assert claims.keys() == {"iss", "aud", "iat", "nbf", "exp", "jti", "cnf"}
    assert (claims["iss"], claims["aud"], claims["jti"]) == (BINDING.issuer, BINDING.audience, "f" * 32)
    assert (claims["iat"], claims["nbf"], claims["exp"]) == (NOW, NOW, NOW + LIFETIME_S)
    assert len(token) < MAX_CERTIFICATE_LENGTH / 2


def test_the_key_of_a_certificate_is_trusted_until_the_certificate_expires():
    leaf = LocalKey.generate()
    key = trusted(TrustedKeys(KEY), certificate(leaf))
    assert key.public_key == leaf.public_key
    assert (key.kid, key.expires_at) == (KEY.kid, NOW + LIFETIME_S)


def test_a_root_key_is_trusted_without_a_certificate():
    key = TrustedKeys(KEY).find(KEY.key_members, issuer="any", audience="any", now=NOW, skew_s=5)
    assert key.public_key == KEY.public_key


class Counting(LocalKey):
    """A root key whose public half counts how often it is looked for."""

    looked_for = 0

    def find(self, kid):
        self.looked_for += 1
        return super().find(kid)


def test_that_the_root_key_is_trusted_is_checked_every_time():
    root = Counting.generate()
    leaf = LocalKey.generate()
    crt = certificates.issue(
        root, leaf.public_key, issuer=BINDING.issuer, audience=BINDING.audience, issued_at=NOW, jti="0" * 32
    )
    trust = TrustedKeys(root)
    trusted(trust, crt)
    before = root.looked_for
    trusted(trust, crt)
    assert root.looked_for == before + 1


def test_no_more_certificates_are_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(certificates, "_MAX_CACHED", 3)
    trust, issued = TrustedKeys(KEY), [certificate() for _ in range(5)]
    for crt in (*issued, *issued):
        assert trusted(trust, crt)
    assert len(trust._cached) == 3


@pytest.mark.parametrize("members", [{}, {"kid": KEY.kid, "crt": "x"}, {"crt": "x", "x5c": []}])
def test_a_key_is_named_in_one_way(members):
    with pytest.raises(StateRejected) as refused:
        TrustedKeys(KEY).find(members, issuer="any", audience="any", now=NOW, skew_s=5)
    assert refused.value.reason == "header"
