"""Certificates: a root key allows a key in an environment's memory to sign tokens for half an hour.

A certificate is a signed token with its own type and claims, so that neither is accepted as the other
(RFC 8725 §3.12). It has `iss` and `aud` (the deployment and the endpoint that the key signs for), `iat`,
`nbf`, `exp`, `jti` (for revocation) and `cnf` with the public key as a JWK (RFC 7800 §3.2). The header of
each token that the key signs contains it.

Benefit: one call of the key service for many tokens, and none while it is unavailable for some minutes.
Cost: an attacker who reads this process's memory can sign states until the certificate expires.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state import jws
from mcp_roundtrip.state.claims import COMMON_TYPES, Limits, check_parties, check_times, require_types
from mcp_roundtrip.state.jws import Backoff, LocalKey, PublicKeys, Signer, VerificationKey, renewal_time

CERTIFICATE_TYP = "mcp-rs-crt+jwt"
LIFETIME_S = 1800
MAX_CERTIFICATE_LENGTH = 2048
"""The limit of a certificate in characters. It has about 600, more with a long issuer or audience."""

_MAX_CACHED = 1024

_TYPES: Mapping[str, type] = {**COMMON_TYPES, "cnf": dict}


def issue(
    root: Signer,
    public_key: EllipticCurvePublicKey,
    *,
    issuer: str,
    audience: str,
    issued_at: int,
    jti: str,
) -> str:
    """Issue a certificate for `public_key`, valid for LIFETIME_S. Raises KeyServiceError."""
    numbers = public_key.public_numbers()
    x, y = (jws.encode(number.to_bytes(32, "big")).decode() for number in (numbers.x, numbers.y))
    claims = {
        "iss": issuer,
        "aud": audience,
        "iat": issued_at,
        "nbf": issued_at,
        "exp": issued_at + LIFETIME_S,
        "jti": jti,
        "cnf": {"jwk": {"crv": "P-256", "kty": "EC", "x": x, "y": y}},
    }
    try:
        return jws.mint(root, CERTIFICATE_TYP, claims, max_length=MAX_CERTIFICATE_LENGTH)
    except StateTooLarge:  # a long issuer or audience
        raise KeyServiceError("certificate_too_long") from None


class Certificate(Struct, frozen=True):
    """A certificate with a valid signature."""

    claims: Mapping[str, Any]
    root_kid: str
    public_key: EllipticCurvePublicKey


class TrustedKeys:
    """The keys that may sign a state: root keys, and keys that a root key has certified."""

    def __init__(self, roots: PublicKeys, revoked: Collection[str] = ()) -> None:
        """Trust `roots` and the keys that they certify. `revoked`: the `jti` of certificates."""
        self._by_kid = jws.key_finder(roots)
        self._revoked = frozenset(revoked)
        # `find` checks the root key, the times, the parties and the revocations each time.
        self._read = lru_cache(_MAX_CACHED)(self._verify)

    def find(
        self, members: Mapping[str, Any], *, issuer: str, audience: str, now: float, skew_s: int
    ) -> VerificationKey:
        """Return the key that a header identifies: `kid` a root key, `crt` a certified one."""
        if members.keys() != {"crt"}:
            return self._by_kid(members)
        try:
            certificate = self._read(jws.to_ascii(members["crt"], MAX_CERTIFICATE_LENGTH))
            self._by_kid({"kid": certificate.root_kid})
            check_parties(certificate.claims, issuer=issuer, audience=audience, principal=None)
            check_times(certificate.claims, now=now, skew_s=skew_s)
        except StateRejected as rejected:
            raise StateRejected(f"certificate_{rejected.reason}") from None
        if certificate.claims["jti"] in self._revoked:
            raise StateRejected("certificate_revoked")
        return VerificationKey(certificate.public_key, certificate.root_kid, certificate.claims["exp"])

    def _verify(self, token: bytes) -> Certificate:
        claims, root = jws.verify(token, CERTIFICATE_TYP, self._by_kid)
        require_types(claims, _TYPES, others=set())
        if claims["exp"] - claims["iat"] > LIFETIME_S:
            raise StateRejected("lifetime")
        return Certificate(claims, root.kid, _public_key(claims["cnf"]))


def _public_key(cnf: Mapping[str, Any]) -> EllipticCurvePublicKey:
    jwk = cnf.get("jwk")
    if cnf.keys() != {"jwk"} or not isinstance(jwk, dict) or jwk.keys() != {"crv", "kty", "x", "y"}:
        raise StateRejected("key")
    if (jwk["crv"], jwk["kty"]) != ("P-256", "EC"):
        raise StateRejected("key")
    x, y = (jws.split(jws.to_ascii(jwk[name], 43), 1)[0] for name in "xy")
    point = b"\x04" + jws.decode(x) + jws.decode(y)
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:  # not two coordinates of 32 bytes, or not on the curve
        raise StateRejected("key") from None


class CertifiedKey(Struct, frozen=True):
    """A key in memory with its certificate, valid from `issued_at` to `expires_at` (epoch seconds)."""

    key: LocalKey
    certificate: str
    issued_at: int

    @property
    def expires_at(self) -> int:
        return self.issued_at + LIFETIME_S

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"crt": self.certificate}

    def sign(self, signing_input: bytes) -> bytes:
        return self.key.sign(signing_input)


class Delegation(Struct):
    """Creates a key and its certificate at the first token, and replaces them regularly.

    Not earlier: all environments started from one snapshot (AWS Lambda SnapStart) would share the key.
    """

    root: Signer
    issuer: str
    audience: str
    limits: Limits
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    random: Callable[[], float]
    """In [0, 1)."""
    renewals: Backoff
    on_issued: Callable[[str, int], None]
    """Called with the `jti` and the expiry (epoch seconds) of each certificate. The `jti` can be revoked."""

    _certified: CertifiedKey | None = None
    _renew_at: float = 0.0

    def signer(self) -> Signer:
        """Return a key whose certificate outlasts any token signed now. Raises KeyServiceError."""
        now = self.clock()
        certified = self._certified
        if certified is None or not self._is_usable(certified, now):
            return self._renew(now)
        if now >= self._renew_at:
            with suppress(KeyServiceError):  # the old key is used as long as possible
                return self.renewals.attempt(lambda: self._renew(now))
        return certified

    def _is_usable(self, certified: CertifiedKey, now: float) -> bool:
        # After the clock was set back, the certificate may be in the future.
        first, last = certified.issued_at - self.limits.skew_s, certified.expires_at - self.limits.round_ttl_s
        return first <= now <= last

    def _renew(self, now: float) -> CertifiedKey:
        issued_at, jti = int(now), self.random_bytes(16).hex()
        key = LocalKey.generate(self.random_bytes)
        certificate = issue(
            self.root,
            key.public_key,
            issuer=self.issuer,
            audience=self.audience,
            issued_at=issued_at,
            jti=jti,
        )
        certified = self._certified = CertifiedKey(key, certificate, issued_at)
        self._renew_at = renewal_time(now, certified.expires_at - self.limits.round_ttl_s, self.random())
        self.on_issued(jti, certified.expires_at)
        return certified
