"""Certificates: a root key allows a key in an environment's memory to sign tokens for half an hour.

A certificate is a signed token with its own type and claims, so that neither is accepted as the other
(RFC 8725 §3.12). It has `iss` and `aud` (the deployment and the endpoint that the key signs for), `iat`,
`nbf`, `exp`, `jti` (for revocation) and `cnf` with the public key as a JWK (RFC 7800 §3.2). The header of
each token that the key signs contains it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state import jws, serialization
from mcp_roundtrip.state.claims import COMMON_TYPES, check_parties, check_times, require_types
from mcp_roundtrip.state.jws import TrustedKey
from mcp_roundtrip.state.keys import PublicKeys, Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

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
    """Issue a certificate for `public_key`, valid for LIFETIME_S.

    Raises KeyServiceError if `root` cannot sign, or if issuer and audience make the certificate too long.
    """
    numbers = public_key.public_numbers()
    x, y = (serialization.encode(number.to_bytes(32, "big")).decode() for number in (numbers.x, numbers.y))
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
    except StateTooLarge:
        raise KeyServiceError("certificate_too_long") from None


class Certificate(Struct, frozen=True):
    """A certificate with a valid signature."""

    claims: Mapping[str, Any]
    root_kid: str
    public_key: EllipticCurvePublicKey


class TrustedKeys:
    """The keys that may sign a state: root keys, and keys that a root key has certified.

    The signature of a certificate is verified once. The root key, the times, the parties and the revocations
    are checked each time.
    """

    def __init__(self, roots: PublicKeys, revoked: Collection[str] = ()) -> None:
        """Trust `roots`, and their certificates except those whose `jti` is in `revoked`."""
        self._by_kid = jws.key_finder(roots)
        self._revoked = frozenset(revoked)
        self._cached: dict[bytes, Certificate] = {}

    def find(
        self, members: Mapping[str, Any], *, issuer: str, audience: str, now: float, skew_s: int
    ) -> TrustedKey:
        """Return the key that a header identifies: `kid` a root key, `crt` a certified key.

        Raises StateRejected. The reason begins with `certificate` if the certificate is invalid.
        """
        if members.keys() != {"crt"}:
            return self._by_kid(members)
        try:
            certificate = self._certificate(serialization.to_ascii(members["crt"], MAX_CERTIFICATE_LENGTH))
            self._by_kid({"kid": certificate.root_kid})
            check_parties(certificate.claims, issuer=issuer, audience=audience, principal=None)
            check_times(certificate.claims, now=now, skew_s=skew_s)
        except StateRejected as rejected:
            raise StateRejected(f"certificate_{rejected.reason}") from None
        if certificate.claims["jti"] in self._revoked:
            raise StateRejected("certificate_revoked")
        return TrustedKey(certificate.public_key, certificate.root_kid, certificate.claims["exp"])

    def _certificate(self, token: bytes) -> Certificate:
        if token not in self._cached:
            certificate = _read(token, self._by_kid)
            if len(self._cached) >= _MAX_CACHED:
                del self._cached[next(iter(self._cached))]  # the oldest
            self._cached[token] = certificate
        return self._cached[token]


def _read(token: bytes, by_kid: jws.FindKey) -> Certificate:
    claims, root = jws.verify(token, CERTIFICATE_TYP, by_kid)
    require_types(claims, _TYPES, others=set())
    if claims["exp"] - claims["iat"] > LIFETIME_S:
        raise StateRejected("lifetime")
    return Certificate(claims, root.kid, _public_key(claims["cnf"]))


def _public_key(cnf: Mapping[str, Any]) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # a call without state does not need it

    jwk = cnf.get("jwk")
    if cnf.keys() != {"jwk"} or not isinstance(jwk, dict) or jwk.keys() != {"crv", "kty", "x", "y"}:
        raise StateRejected("key")
    if (jwk["crv"], jwk["kty"]) != ("P-256", "EC"):
        raise StateRejected("key")
    x, y = (serialization.split(serialization.to_ascii(jwk[name], 43), 1)[0] for name in "xy")
    point = b"\x04" + serialization.decode(x) + serialization.decode(y)
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:  # not two coordinates of 32 bytes, or not on the curve
        raise StateRejected("key") from None
