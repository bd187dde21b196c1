"""Signed tokens: minted through PyJWT, checked by a verifier that is stricter than PyJWT.

A token is a JWS in compact form (RFC 7515 §7.1) with exactly one shape: ES256, a `kid`, and a `typ` that
keeps tokens made for different purposes apart (RFC 8725 §3.11). PyJWT's own decoder takes padding, any `typ`,
duplicate and unknown members and the second valid s of a signature, each of which would make a second
spelling of a token; it is also several times slower on large tokens.

jwt and cryptography are imported where they are used: a call without state does without them.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import StateRejected, StateTooLarge
from mcp_roundtrip.state.keys import P256_ORDER, PublicKeys, Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from jwt import PyJWS

ALG = "ES256"
_SIGNATURE_BYTES = 64
# Ours has some 90 characters; the bound keeps what is parsed before the signature is checked small.
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,512})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})")


def mint(signer: Signer, typ: str, claims: Mapping[str, Any], *, max_length: int) -> str:
    """Sign `claims` into a token of type `typ`.

    Raises StateTooLarge, before anything is signed, for a token of more than `max_length` characters, and
    KeyServiceError when the signer cannot sign.
    """
    payload = canonical.compact(claims).encode("ascii")
    header = {"alg": ALG, "kid": signer.kid, "typ": typ}
    length = sum(
        _encoded_length(part) for part in (len(canonical.compact(header)), len(payload), _SIGNATURE_BYTES)
    )
    if length + 2 > max_length:
        raise StateTooLarge(length + 2, max_length)
    # PyJWT hands the key to the algorithm unseen, and ours takes a Signer.
    return _pyjws().encode(payload, cast(Any, signer), algorithm=ALG, headers=header)


def verify(token: object, typ: str, keys: PublicKeys, *, max_length: int) -> dict[str, Any]:
    """The claims of a token of type `typ` that one of `keys` signed; what they say the caller checks.

    Raises StateRejected for everything else, and KeyServiceError when there are no keys to check with.
    """
    header, payload, signature, signing_input = _parts(token, max_length)
    _check_signature(_key(header, typ, keys), signature, signing_input)
    # Its own, and the journal adds levels to what a body may have.
    return _object(payload, "payload", max_depth=2 * canonical.MAX_DEPTH)


def _parts(token: object, max_length: int) -> tuple[bytes, bytes, bytes, bytes]:
    if not isinstance(token, str):
        raise StateRejected("not_a_string")
    if len(token) > max_length:
        raise StateRejected("too_long")
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise StateRejected("malformed")
    header, payload, signature = (_decoded(part) for part in match.groups())
    return header, payload, signature, token[: match.end(2)].encode("ascii")


def _decoded(part: str) -> bytes:
    """The inverse of unpadded base64url for its one canonical spelling."""
    if len(part) % 4 == 1:
        raise StateRejected("malformed")
    decoded = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    # The bits that the last character has too many must be zero (RFC 4648 §3.5).
    if urlsafe_b64encode(decoded).rstrip(b"=").decode() != part:
        raise StateRejected("malformed")
    return decoded


def _key(header: bytes, typ: str, keys: PublicKeys) -> EllipticCurvePublicKey:
    members = _object(header, "header")
    kid = members.get("kid")
    if not isinstance(kid, str) or members != {"alg": ALG, "kid": kid, "typ": typ}:
        raise StateRejected("header")
    key = keys.find(kid)
    if key is None:
        raise StateRejected("unknown_key")
    return key


def _check_signature(key: EllipticCurvePublicKey, signature: bytes, signing_input: bytes) -> None:
    from cryptography.exceptions import InvalidSignature  # see the module's docstring
    from cryptography.hazmat.primitives import hashes  # as above
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # as above

    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    # With (r, s), (r, order - s) is valid too: without this rule every token has a twin.
    if s > P256_ORDER // 2:
        raise StateRejected("signature")
    try:
        key.verify(utils.encode_dss_signature(r, s), signing_input, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise StateRejected("signature") from None


def _object(document: bytes, reason: str, *, max_depth: int = canonical.MAX_DEPTH) -> dict[str, Any]:
    try:
        value = canonical.parse(document, max_depth=max_depth)
    except ValueError:
        raise StateRejected(reason) from None
    if not isinstance(value, dict):
        raise StateRejected(reason)
    return value


def _encoded_length(size: int) -> int:
    return (size * 4 + 2) // 3


@cache
def _pyjws() -> PyJWS:
    """A PyJWS of our own whose ES256 asks a Signer; PyJWT's global instance stays as it is."""
    from jwt import PyJWS  # see the module's docstring
    from jwt.algorithms import Algorithm  # as above

    class SignerES256(Algorithm):
        def prepare_key(self, key: Signer) -> Signer:
            return key

        def sign(self, msg: bytes, key: Signer) -> bytes:
            return key.sign(msg)

        def verify(self, msg: bytes, key: Signer, sig: bytes) -> bool:
            raise NotImplementedError("tokens are checked by verify() of this module")

        @staticmethod
        def to_jwk(key_obj: Any, as_dict: bool = False) -> Any:
            raise NotImplementedError("a Signer shows no key")

        @staticmethod
        def from_jwk(jwk: Any) -> Any:
            raise NotImplementedError("a Signer is not made from a JWK")

    jws = PyJWS(algorithms=[ALG])
    jws.unregister_algorithm(ALG)
    jws.register_algorithm(ALG, SignerES256())
    return jws
