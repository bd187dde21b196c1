"""Signed tokens: JWS in compact serialization (RFC 7515 §7.1), in exactly one form.

The header has ES256, a `typ` that keeps tokens made for different purposes apart (RFC 8725 §3.11), and the
members that identify the key. PyJWT is not used. Its decoder accepts padding, any `typ`, duplicate and
unknown members and the second valid s of a signature, so a token would have several valid forms. Its import
takes twice as long as that of the parts of cryptography that a token needs. The tests compare the tokens with
PyJWT's and joserfc's.

Lengths are checked before anything is read, and parts before anything is decoded. A key id is a digest of the
key. Keys are requested early, spread over the environments, and after a pause if a request failed.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.protocol import strict_json

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the group of P-256 (SEC 2, section 2.4.2)."""


class Signer(Protocol):
    """Signs with one key, such as `aws.kms.KmsSigner` and `signing_key_certificates.CertifiedKey`.

    Both members raise KeyServiceError if the key is not available.
    """

    @property
    def key_members(self) -> Mapping[str, str]:
        """The header members that identify the key: `kid` or `crt`."""

    def sign(self, signing_input: bytes) -> bytes:
        """Return the ECDSA signature over SHA-256 as 64 bytes r‖s, with the lower s."""


class VerificationKey(Struct, frozen=True):
    """A P-256 key, trusted until `expires_at` (epoch seconds). `kid`: its own, or its root key's."""

    public_key: EllipticCurvePublicKey
    kid: str
    expires_at: float = math.inf


class PublicKeys(Protocol):
    """The trusted public keys, several during a rotation, such as `aws.kms.KmsPublicKeys`."""

    def find(self, kid: str) -> VerificationKey | None:
        """Return the key with this unverified id, which is only compared. Raises KeyServiceError."""


def kid_of(public_key: EllipticCurvePublicKey) -> str:
    """Return the key id: a digest of the SubjectPublicKeyInfo in DER. Raises ValueError for another curve."""
    if public_key.curve.name != "secp256r1":
        raise ValueError(f"ES256 needs a key on P-256, not {public_key.curve.name}")
    der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return urlsafe_b64encode(hashlib.sha256(der).digest()[:12]).decode()


def raw_signature(der: bytes) -> bytes:
    """Convert a DER signature to 64 bytes r‖s, with the lower of the two valid s. Raises ValueError."""
    r, s = utils.decode_dss_signature(der)
    if not (0 < r < P256_ORDER and 0 < s < P256_ORDER):
        raise ValueError("r and s must lie between 0 and the order of P-256")
    return r.to_bytes(32, "big") + min(s, P256_ORDER - s).to_bytes(32, "big")


def is_valid_signature(signature: bytes, signing_input: bytes, public_key: EllipticCurvePublicKey) -> bool:
    """Return whether 64 bytes r‖s are a valid signature with the lower s."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    # (r, order - s) is valid, too: without this check each token would have a second valid form.
    if s > P256_ORDER // 2:
        return False
    try:
        public_key.verify(utils.encode_dss_signature(r, s), signing_input, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


class LocalKey:
    """A private key in memory, as signer and as the only trusted key."""

    def __init__(self, private_key: EllipticCurvePrivateKey) -> None:
        self._private_key = private_key
        self.public_key = private_key.public_key()
        self.kid = kid_of(self.public_key)

    @classmethod
    def generate(cls, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> LocalKey:
        """Generate a key. SnapStart copies the state of OpenSSL's generator; the kernel's is seeded again."""
        # FIPS 186-5 §A.2.1: 64 bits more than the order, so that the remainder is unbiased.
        secret = int.from_bytes(random_bytes(40), "big") % (P256_ORDER - 1) + 1
        return cls(ec.derive_private_key(secret, ec.SECP256R1()))

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"kid": self.kid}

    def sign(self, signing_input: bytes) -> bytes:
        return raw_signature(self._private_key.sign(signing_input, ec.ECDSA(SHA256())))

    def find(self, kid: str) -> VerificationKey | None:
        return VerificationKey(self.public_key, kid) if kid == self.kid else None


T = TypeVar("T")

FIRST_RETRY_S = 1
"""The pause after the first failed call for a key that is needed now, so that many forgeries do not cause
many calls."""

RENEWAL_RETRY_S = 60
"""The pause after a failed call for a key that is needed later, so that requests do not wait for it."""


def renewal_time(start: float, end: float, random: float) -> float:
    """Return a time between two thirds and eleven twelfths of the way; the rest is for retries.

    `random`, in [0, 1), spreads the calls of environments that started together.
    """
    return start + (end - start) * (8 + 3 * random) / 12


class Backoff:
    """Makes calls for keys, and pauses after a failed one: each blocks its request until the SDK times out.

    The pause doubles from `first_pause_s` up to a minute. `clock` returns epoch seconds. `on_failure` takes
    the error of each failed call.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        first_pause_s: int = RENEWAL_RETRY_S,
        on_failure: Callable[[KeyServiceError], None] = lambda error: None,
    ) -> None:
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._on_failure = on_failure
        self._pause_s = 0
        self._failed_at = 0.0
        self._failure = ("", "")

    def attempt(self, call: Callable[[], T]) -> T:
        """Return the result of `call`. Raises KeyServiceError, also without a call during a pause."""
        if self._failed_at <= self._clock() < self._failed_at + self._pause_s:
            # A new exception: one that is raised again accumulates tracebacks.
            raise KeyServiceError(*self._failure)
        try:
            result = call()
        except KeyServiceError as error:
            self._failure = (error.reason, str(error))
            self._pause_s = min(2 * self._pause_s, RENEWAL_RETRY_S) or self._first_pause_s
            self._failed_at = self._clock()  # after the call, which may have taken longer than the pause
            self._on_failure(error)
            raise
        self._pause_s = 0
        return result


ALG = "ES256"
_SIGNATURE_CHARACTERS = 86
# A header with a certificate has about 900 characters. The limit bounds what is parsed before verification.
_MAX_HEADER = 4096


FindKey = Callable[[Mapping[str, Any]], VerificationKey]
"""Takes the header members except `alg` and `typ`. Raises StateRejected if they identify no trusted key."""


def mint(
    signer: Signer,
    typ: str,
    claims: Mapping[str, Any],
    *,
    max_length: int,
    encrypted_length: Callable[[int], int] = lambda length: length,
) -> str:
    """Sign `claims` into a token of type `typ`.

    `encrypted_length` returns the length of the encrypted token for the length of the signed one. Raises
    StateTooLarge, before signing, if that is over `max_length`, and KeyServiceError if signing fails.
    """
    header = _encode_json({"alg": ALG, **signer.key_members, "typ": typ})
    signing_input = header + b"." + _encode_json(claims)
    length = encrypted_length(len(signing_input) + 1 + _SIGNATURE_CHARACTERS)
    if length > max_length:
        raise StateTooLarge(length, max_length)
    signature = encode(signer.sign(signing_input))
    return f"{signing_input.decode('ascii')}.{signature.decode('ascii')}"


def _encode_json(members: Mapping[str, Any]) -> bytes:
    return encode(strict_json.compact_json(members).encode("ascii"))


def verify(token: bytes, typ: str, find_key: FindKey) -> tuple[dict[str, Any], VerificationKey]:
    """Verify a token of type `typ`; return its claims, not checked yet, and the key that signed it."""
    header, payload, signature = split(token, 3)
    if len(header) > _MAX_HEADER or len(signature) != _SIGNATURE_CHARACTERS:
        raise StateRejected("malformed")
    key = find_key(_key_members(header, typ))
    signing_input = token[: -_SIGNATURE_CHARACTERS - 1]
    if not is_valid_signature(decode(signature), signing_input, key.public_key):
        raise StateRejected("signature")
    # Deeper than a request's body: the journal adds levels.
    return decode_json_object(payload, "payload", max_depth=2 * strict_json.MAX_DEPTH), key


def key_finder(keys: PublicKeys) -> FindKey:
    """Return a FindKey that accepts a header with `kid` and no other member."""

    def find(members: Mapping[str, Any]) -> VerificationKey:
        kid = members.get("kid")
        if members.keys() != {"kid"} or not isinstance(kid, str):
            raise StateRejected("header")
        key = keys.find(kid)
        if key is None:
            raise StateRejected("unknown_key")
        return key

    return find


def _key_members(header: bytes, typ: str) -> dict[str, Any]:
    members = decode_json_object(header, "header")
    # The algorithm is never the token's choice (RFC 8725 §3.1).
    if (members.pop("alg", None), members.pop("typ", None)) != (ALG, typ):
        raise StateRejected("header")
    return members


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def to_ascii(token: object, max_length: int) -> bytes:
    """Return the token as ASCII. Raises StateRejected if it is not a string, too long or not ASCII."""
    if not isinstance(token, str):
        raise StateRejected("not_a_string")
    if len(token) > max_length:
        raise StateRejected("too_long")
    try:
        return token.encode("ascii")
    except UnicodeEncodeError:
        raise StateRejected("malformed") from None


def split(token: bytes, count: int) -> list[bytes]:
    """Split a token into `count` encoded parts. Raises StateRejected for another number or alphabet."""
    if token.translate(None, _ALPHABET) != b"." * (count - 1):
        raise StateRejected("malformed")
    return token.split(b".")


def decode(part: bytes) -> bytes:
    """Decode a part. Raises StateRejected for a form that `encode` does not write."""
    tail = len(part) % 4
    if tail == 1:
        raise StateRejected("malformed")
    decoded = urlsafe_b64decode(part + b"=" * (-tail % 4))
    # The unused bits of the last character must be zero (RFC 4648 §3.5).
    if tail and encode(decoded[1 - tail :]) != part[-tail:]:
        raise StateRejected("malformed")
    return decoded


def decode_json_object(part: bytes, reason: str, *, max_depth: int = strict_json.MAX_DEPTH) -> dict[str, Any]:
    """Return the JSON object in an encoded part. Raises StateRejected with `reason` if there is none."""
    try:
        return strict_json.parse_object(decode(part), max_depth=max_depth)
    except ValueError:
        raise StateRejected(reason) from None


@contextmanager
def denied_by_default() -> Iterator[None]:
    """Refuse the token that is opened in the block after any error: no token may cause a server error."""
    try:
        yield
    except (StateRejected, KeyServiceError):  # which says nothing about the token
        raise
    except Exception as error:
        raise StateRejected(f"unexpected_{type(error).__name__}") from None


def encode(data: bytes) -> bytes:
    """Encode bytes as Base64url without padding (RFC 7515 §2)."""
    return urlsafe_b64encode(data).rstrip(b"=")


def encoded_length(size: int) -> int:
    return (size * 4 + 2) // 3
