"""Signed tokens: minted through PyJWT, checked by a verifier that is stricter than PyJWT.

A token is a JWS in compact form (RFC 7515 §7.1) with exactly one shape: ES256, a `typ` that keeps tokens made
for different purposes apart (RFC 8725 §3.11), and the members that name the key. PyJWT's own decoder takes
padding, any `typ`, duplicate and unknown members and the second valid s of a signature, each of which would
make a second spelling of a token; it is also several times slower on large tokens.

jwt and cryptography are imported where they are used: a call without state does without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import StateTooLarge
from mcp_roundtrip.state import compact
from mcp_roundtrip.state.keys import PublicKeys, Signer, is_valid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from jwt import PyJWS

ALG = "ES256"
_SIGNATURE_BYTES = 64
_SIGNATURE_CHARACTERS = 86
# With a certificate it has some 900 characters; the bound keeps what is parsed before the check small.
_MAX_HEADER = 4096


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key whose signatures count until `expires_at` (epoch seconds). `kid` names the root key behind it."""

    public_key: EllipticCurvePublicKey
    kid: str
    expires_at: float = math.inf


FindKey = Callable[[Mapping[str, Any]], TrustedKey]
"""Takes the header's members besides `alg` and `typ`; raises StateRejected if they name no trusted key."""


def mint(
    signer: Signer,
    typ: str,
    claims: Mapping[str, Any],
    *,
    max_length: int,
    wrapped: Callable[[int], int] = lambda length: length,
) -> str:
    """Sign `claims` into a token of type `typ`.

    `wrapped` says how long a token of so many characters will be once it is wrapped into another. Raises
    StateTooLarge, before anything is signed, if that is over `max_length`, and KeyServiceError when the
    signer cannot sign.
    """
    payload = canonical.compact_json(claims).encode("ascii")
    header = {"alg": ALG, **signer.key_members, "typ": typ}
    sizes = (len(canonical.compact_json(header)), len(payload), _SIGNATURE_BYTES)
    length = wrapped(sum(compact.encoded_length(size) for size in sizes) + 2)
    if length > max_length:
        raise StateTooLarge(length, max_length)
    # PyJWT hands the key to the algorithm unseen, and ours takes a Signer.
    return _pyjws().encode(payload, cast(Any, signer), algorithm=ALG, headers=header)


def verify(token: bytes, typ: str, find_key: FindKey) -> tuple[dict[str, Any], TrustedKey]:
    """The claims of a token of type `typ`, and the key that signed it; what the claims say the caller checks.

    Raises StateRejected for everything else, and what `find_key` raises.
    """
    header, payload, signature = compact.split(token, 3)
    if len(header) > _MAX_HEADER or len(signature) != _SIGNATURE_CHARACTERS:
        raise StateRejected("malformed")
    key = find_key(_key_members(header, typ))
    if not is_valid(compact.decode(signature), token[: -_SIGNATURE_CHARACTERS - 1], key.public_key):
        raise StateRejected("signature")
    # Its own, and the journal adds levels to what a body may have.
    return compact.json_object(payload, "payload", max_depth=2 * canonical.MAX_DEPTH), key


def named_by_kid(keys: PublicKeys) -> FindKey:
    """Find keys by a header that has a `kid` and nothing else."""

    def find(members: Mapping[str, Any]) -> TrustedKey:
        kid = members.get("kid")
        if members.keys() != {"kid"} or not isinstance(kid, str):
            raise StateRejected("header")
        key = keys.find(kid)
        if key is None:
            raise StateRejected("unknown_key")
        return TrustedKey(key, kid)

    return find


def _key_members(header: bytes, typ: str) -> dict[str, Any]:
    members = compact.json_object(header, "header")
    # The algorithm is never the token's choice (RFC 8725 §3.1).
    if (members.pop("alg", None), members.pop("typ", None)) != (ALG, typ):
        raise StateRejected("header")
    return members


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
