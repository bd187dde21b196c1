"""Certificates and the keys that they certify. test_attacks covers invalid ones."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import certificates
from mcp_roundtrip.state.certificates import CERTIFICATE_TYP, LIFETIME_S, MAX_CERTIFICATE_LENGTH, TrustedKeys
from mcp_roundtrip.state.jws import LocalKey
from support.tokens import BINDING, KEY, NOW, claims_of, header_of


def certificate(leaf=None, *, jti="0" * 32, issued_at=NOW):
    public_key = (leaf or LocalKey.generate()).public_key
    return certificates.issue(
        KEY, public_key, issuer=BINDING.issuer, audience=BINDING.audience, issued_at=issued_at, jti=jti
    )


def trusted(trust, crt, now=NOW):
    return trust.find({"crt": crt}, issuer=BINDING.issuer, audience=BINDING.audience, now=now, skew_s=5)


def test_a_certificate_names_its_key_issuer_and_expiry():
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


class CountingKeys(LocalKey):
    """A root key that counts lookups of its public key."""

    lookups = 0

    def find(self, kid):
        self.lookups += 1
        return super().find(kid)


def test_trust_in_the_root_key_is_checked_for_every_token():
    root = CountingKeys(ec.generate_private_key(ec.SECP256R1()))
    leaf = LocalKey.generate()
    crt = certificates.issue(
        root, leaf.public_key, issuer=BINDING.issuer, audience=BINDING.audience, issued_at=NOW, jti="0" * 32
    )
    trust = TrustedKeys(root)
    trusted(trust, crt)
    before = root.lookups
    trusted(trust, crt)
    assert root.lookups == before + 1


def test_the_cache_of_certificates_is_bounded(monkeypatch):
    monkeypatch.setattr(certificates, "_MAX_CACHED", 3)
    trust, issued = TrustedKeys(KEY), [certificate() for _ in range(5)]
    for crt in (*issued, *issued):
        assert trusted(trust, crt)
    assert len(trust._cached) == 3


@pytest.mark.parametrize("members", [{}, {"kid": KEY.kid, "crt": "x"}, {"crt": "x", "x5c": []}])
def test_a_header_with_unexpected_key_members_is_refused(members):
    with pytest.raises(StateRejected) as refused:
        TrustedKeys(KEY).find(members, issuer="any", audience="any", now=NOW, skew_s=5)
    assert refused.value.reason == "header"
