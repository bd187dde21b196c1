"""Certificates: a root key's word that a key in some environment's memory may sign tokens for half an hour.

A certificate is itself a signed token, of a type and with claims of its own, so that neither passes for the
other (RFC 8725 §3.12). It holds `iss` and `aud` (the deployment and the endpoint the key signs for), `iat`,
`nbf`, `exp`, `jti` (to revoke it by) and `cnf` with the public key as a JWK (RFC 7800 §3.2). It travels in
the header of every token that the key signs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state import compact, jws
from mcp_roundtrip.state.claims import COMMON_TYPES, check_parties, check_times, require_types
from mcp_roundtrip.state.jws import TrustedKey
from mcp_roundtrip.state.keys import PublicKeys, Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

TYP = "mcp-rs-crt+jwt"
LIFETIME_S = 1800
MAX_LENGTH = 2048
"""The most characters of a certificate. It has some 600; a long issuer or audience makes it longer."""

_MAX_REMEMBERED = 1024

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
    """A certificate for `public_key`, good for LIFETIME_S.

    Raises KeyServiceError when `root` cannot sign, or when issuer and audience make the certificate too long.
    """
    numbers = public_key.public_numbers()
    x, y = (compact.encode(number.to_bytes(32, "big")).decode() for number in (numbers.x, numbers.y))
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
        return jws.mint(root, TYP, claims, max_length=MAX_LENGTH)
    except StateTooLarge:
        raise KeyServiceError("certificate_too_long") from None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate whose signature was right."""

    claims: Mapping[str, Any]
    root_kid: str
    public_key: EllipticCurvePublicKey


class Trust:
    """Which keys may sign a state: root keys, and those that a root key has certified.

    Signatures of certificates are checked once; that the root key is still trusted, the time, the parties and
    the revocations every time.
    """

    def __init__(self, roots: PublicKeys, revoked: Collection[str] = ()) -> None:
        """`revoked` holds the `jti` of certificates that are not accepted any more."""
        self._by_kid = jws.named_by_kid(roots)
        self._revoked = frozenset(revoked)
        self._remembered: dict[bytes, Certificate] = {}

    def key(
        self, members: Mapping[str, Any], *, issuer: str, audience: str, now: float, skew_s: int
    ) -> TrustedKey:
        """The key that a header's members name: `kid` a root key, `crt` a certified one.

        Raises StateRejected, with a reason that begins with `certificate` where that is what is wrong.
        """
        if members.keys() != {"crt"}:
            return self._by_kid(members)
        try:
            certificate = self._certificate(compact.read(members["crt"], MAX_LENGTH))
            self._by_kid({"kid": certificate.root_kid})
            check_parties(certificate.claims, issuer=issuer, audience=audience, principal=None)
            check_times(certificate.claims, now=now, skew_s=skew_s)
        except StateRejected as rejected:
            raise StateRejected(f"certificate_{rejected.reason}") from None
        if certificate.claims["jti"] in self._revoked:
            raise StateRejected("certificate_revoked")
        return TrustedKey(certificate.public_key, certificate.root_kid, certificate.claims["exp"])

    def _certificate(self, token: bytes) -> Certificate:
        if token not in self._remembered:
            certificate = _read(token, self._by_kid)
            if len(self._remembered) >= _MAX_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]  # the oldest
            self._remembered[token] = certificate
        return self._remembered[token]


def _read(token: bytes, by_kid: jws.FindKey) -> Certificate:
    claims, root = jws.verify(token, TYP, by_kid)
    require_types(claims, _TYPES, others=set())
    if claims["exp"] - claims["iat"] > LIFETIME_S:
        raise StateRejected("lifetime")
    return Certificate(claims, root.kid, _public_key(claims["cnf"]))


def _public_key(cnf: Mapping[str, Any]) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # a call without state does without it

    jwk = cnf.get("jwk")
    if cnf.keys() != {"jwk"} or not isinstance(jwk, dict) or jwk.keys() != {"crv", "kty", "x", "y"}:
        raise StateRejected("key")
    if (jwk["crv"], jwk["kty"]) != ("P-256", "EC"):
        raise StateRejected("key")
    x, y = (compact.split(compact.read(jwk[name], 43), 1)[0] for name in "xy")
    point = b"\x04" + compact.decode(x) + compact.decode(y)
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:  # not two coordinates of 32 bytes, or not on the curve
        raise StateRejected("key") from None
