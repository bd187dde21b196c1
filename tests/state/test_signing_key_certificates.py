"""Certificates and the keys that they certify. test_attacks covers invalid ones."""

import secrets

import jwt
import pytest

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state import signing_key_certificates
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jws import Backoff, LocalKey, renewal_time
from mcp_roundtrip.state.signing_key_certificates import (
    CERTIFICATE_TYP,
    LIFETIME_S,
    MAX_CERTIFICATE_LENGTH,
    Delegation,
    TrustedKeys,
)
from mcp_roundtrip_testing import FakeClock
from support.interpreters import run_program
from support.tokens import BINDING, KEY, NOW, claims_of, header_of


def certificate(leaf=None, *, jti="0" * 32):
    public_key = (leaf or LocalKey.generate()).public_key
    return signing_key_certificates.issue(
        KEY, public_key, issuer=BINDING.issuer, audience=BINDING.audience, issued_at=NOW, jti=jti
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


def test_the_key_of_a_certificate_is_trusted_until_the_certificate_expires_and_a_root_key_without_one():
    leaf = LocalKey.generate()
    key = trusted(TrustedKeys(KEY), certificate(leaf))
    assert key.public_key == leaf.public_key
    assert (key.kid, key.expires_at) == (KEY.kid, NOW + LIFETIME_S)
    root = TrustedKeys(KEY).find(KEY.key_members, issuer="any", audience="any", now=NOW, skew_s=5)
    assert root.public_key == KEY.public_key


def test_the_cache_of_certificates_is_bounded(monkeypatch):
    monkeypatch.setattr(signing_key_certificates, "_MAX_CACHED", 3)
    trust, issued = TrustedKeys(KEY), [certificate() for _ in range(5)]
    for crt in (*issued, *issued):
        assert trusted(trust, crt)
    assert trust._read.cache_info().currsize == 3


LIMITS = Limits()
WINDOW_S = LIFETIME_S - LIMITS.round_ttl_s


class Root(LocalKey):
    """A root key that counts its calls."""

    signed = 0

    def sign(self, signing_input):
        self.signed += 1
        return super().sign(signing_input)


@pytest.fixture
def root():
    return Root.generate()


@pytest.fixture
def clock():
    return FakeClock(NOW)


def delegation(root, clock, **changes):
    given = {
        "root": root,
        "issuer": BINDING.issuer,
        "audience": BINDING.audience,
        "limits": LIMITS,
        "clock": clock,
        "random_bytes": secrets.token_bytes,
        "random": lambda: 0.0,
        "renewals": Backoff(clock),
        "on_issued": lambda jti, expires_at: None,
    }
    return Delegation(**{**given, **changes})


def test_the_first_token_generates_a_key_whose_certificate_serves_many_and_is_reported(root, clock):
    reported = []
    delegating = delegation(root, clock, on_issued=lambda *about: reported.append(about))
    assert root.signed == 0
    signer = delegating.signer()
    assert delegating.signer() is signer
    assert root.signed == 1
    key = trusted(TrustedKeys(root), signer.certificate)
    assert key.public_key == signer.key.public_key
    assert (key.kid, key.expires_at) == (root.kid, NOW + LIFETIME_S)
    assert reported == [(claims_of(signer.certificate)["jti"], NOW + LIFETIME_S)]


def test_every_signature_expires_before_its_certificate(root, clock):
    delegating = delegation(root, clock, random=lambda: 0.999)
    for second in range(0, 3 * LIFETIME_S, 7):
        clock.now = NOW + second + 0.9
        key = trusted(TrustedKeys(root), delegating.signer().certificate, clock.now)
        assert key.expires_at >= int(clock.now) + LIMITS.round_ttl_s


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999])
def test_a_certificate_is_renewed_at_a_random_time_before_it_expires(root, clock, random):
    delegating = delegation(root, clock, random=lambda: random)
    first = delegating.signer()
    clock.now = renewal_time(NOW, NOW + WINDOW_S, random) - 1
    assert delegating.signer() is first
    clock.now += 1
    second = delegating.signer()
    assert second.certificate != first.certificate
    assert second.key.kid != first.key.kid


@pytest.mark.parametrize("seconds", [-86_400, -6, -5])
def test_a_clock_that_is_set_back_by_more_than_the_skew_causes_a_new_certificate(root, clock, seconds):
    delegating = delegation(root, clock)
    first = delegating.signer()
    clock.now += seconds
    second = delegating.signer()
    assert (second is first) == (seconds == -5)
    assert trusted(TrustedKeys(root), second.certificate, clock.now)


def test_a_certificate_over_the_size_limit_is_not_issued(root, clock):
    with pytest.raises(KeyServiceError) as failed:
        delegation(root, clock, audience="https://mcp.example/" + "x" * 1500).signer()
    assert failed.value.reason == "certificate_too_long"
    assert root.signed == 0


def test_the_jwk_of_a_certificate_is_that_of_the_libraries():
    for _ in range(20):
        leaf = LocalKey.generate()
        ours = claims_of(certificate(leaf))["cnf"]["jwk"]
        assert ours == jwt.algorithms.ECAlgorithm.to_jwk(leaf.public_key, as_dict=True)


CLONES = """
import os, secrets, sys, time
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.signing_key_certificates import Delegation
from mcp_roundtrip.state.jws import Backoff, LocalKey

ports = (Limits(), time.time, secrets.token_bytes, secrets.SystemRandom().random, Backoff(time.time))
delegating = Delegation(LocalKey.generate(), "issuer", "audience", *ports, lambda jti, expires_at: None)
for _ in range(3):
    if os.fork() == 0:
        print(delegating.signer().key.kid, flush=True)
        os._exit(0)
    os.wait()
"""


def test_processes_forked_from_one_snapshot_generate_different_keys():
    """As with SnapStart: many environments start from one memory image."""
    done = run_program(CLONES)
    kids = done.stdout.splitlines()
    assert len(kids) == len(set(kids)) == 3
