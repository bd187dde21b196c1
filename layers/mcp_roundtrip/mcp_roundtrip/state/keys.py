"""Who signs tokens and whose signatures count: ES256 (RFC 7518 §3.4), keys named by a digest of themselves.

cryptography is imported where it is used: a call that neither mints nor checks a token does without it.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the group of P-256 (SEC 2, section 2.4.2)."""


class Signer(Protocol):
    """Signs with one key. Both members raise KeyServiceError when the key cannot be reached."""

    @property
    def key_members(self) -> Mapping[str, str]:
        """The members of a token's header that say which key this is: `kid`, or `crt`."""
        ...

    def sign(self, signing_input: bytes) -> bytes:
        """The ECDSA signature over SHA-256 as 64 bytes r‖s, s in the lower half."""
        ...


class PublicKeys(Protocol):
    """The keys whose tokens are accepted, several of them while one replaces another."""

    def find(self, kid: str) -> EllipticCurvePublicKey | None:
        """The trusted P-256 key of that id, or None.

        `kid` comes from an unverified header: it is only ever compared, and never makes anything be fetched.
        Raises KeyServiceError when not a single key could be loaded.
        """
        ...


def kid_of(public_key: EllipticCurvePublicKey) -> str:
    """URL-safe Base64 of the first 12 bytes of SHA-256 over the SubjectPublicKeyInfo in DER.

    Raises ValueError for a key that is not on P-256.
    """
    from cryptography.hazmat.primitives.serialization import (  # see the module's docstring
        Encoding,
        PublicFormat,
    )

    if public_key.curve.name != "secp256r1":
        raise ValueError(f"ES256 needs a key on P-256, not {public_key.curve.name}")
    der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return urlsafe_b64encode(hashlib.sha256(der).digest()[:12]).decode()


def raw_signature(der: bytes) -> bytes:
    """The DER signature as r‖s, 64 bytes, with the lower of the two s that are valid.

    Raises ValueError for what is not a DER signature.
    """
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature  # as above

    r, s = decode_dss_signature(der)
    if not (0 < r < P256_ORDER and 0 < s < P256_ORDER):
        raise ValueError("r and s must lie between 0 and the order of P-256")
    return r.to_bytes(32, "big") + min(s, P256_ORDER - s).to_bytes(32, "big")


def is_valid(signature: bytes, signing_input: bytes, public_key: EllipticCurvePublicKey) -> bool:
    """Whether 64 bytes r‖s are the public key's signature, in the one form that `raw_signature` gives it."""
    from cryptography.exceptions import InvalidSignature  # as above
    from cryptography.hazmat.primitives import hashes  # as above
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # as above

    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    # With (r, s), (r, order - s) is valid too: without this rule every token has a twin.
    if s > P256_ORDER // 2:
        return False
    try:
        public_key.verify(utils.encode_dss_signature(r, s), signing_input, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


class LocalKey:
    """A private key in memory: signs, and trusts itself."""

    def __init__(self, private_key: EllipticCurvePrivateKey) -> None:
        """Raises ValueError for a key that is not on P-256."""
        self._private_key = private_key
        self.public_key = private_key.public_key()
        self.kid = kid_of(self.public_key)

    @classmethod
    def generate(cls, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> LocalKey:
        """A new key from `random_bytes`.

        Not from OpenSSL's generator: where a process is cloned from a snapshot (AWS Lambda SnapStart), so is
        that generator's state, while the kernel's is seeded anew.
        """
        from cryptography.hazmat.primitives.asymmetric import ec  # as above

        # FIPS 186-5 §A.2.1: 64 bits more than the order has, so that the remainder is unbiased.
        secret = int.from_bytes(random_bytes(40), "big") % (P256_ORDER - 1) + 1
        return cls(ec.derive_private_key(secret, ec.SECP256R1()))

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"kid": self.kid}

    def sign(self, signing_input: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes  # as above
        from cryptography.hazmat.primitives.asymmetric import ec  # as above

        return raw_signature(self._private_key.sign(signing_input, ec.ECDSA(hashes.SHA256())))

    def find(self, kid: str) -> EllipticCurvePublicKey | None:
        return self.public_key if kid == self.kid else None
