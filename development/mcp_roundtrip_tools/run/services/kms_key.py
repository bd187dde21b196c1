"""A KMS key: its material, its state, and the requests that it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

MAX_MESSAGE = 4096
"""The largest message of Sign, Verify and GenerateMac, in bytes."""

ECC = ("ECC_NIST_P256", "SIGN_VERIFY")
HMAC = ("HMAC_256", "GENERATE_VERIFY_MAC")
"""KeySpec and KeyUsage of signing keys and of HMAC keys."""

Material = ec.EllipticCurvePrivateKey | bytes


class KmsFault(Exception):
    """An error response of KMS: `code` is the AWS error code, such as `DisabledException`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


def checked_material(material: Material) -> Material:
    """Return a P-256 private key (also from PEM text) or a 32-byte HMAC secret, or raise ValueError."""
    if isinstance(material, bytes) and material.lstrip().startswith(b"-----BEGIN"):
        loaded = load_pem_private_key(material, password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the PEM must hold an elliptic curve private key")
        material = loaded
    if isinstance(material, bytes):
        if len(material) != 32:
            raise ValueError("an HMAC_256 secret has 32 bytes")
    elif not isinstance(material.curve, ec.SECP256R1):
        raise ValueError("the key must be on P-256")
    return material


@dataclass(slots=True)
class Key:
    key_id: str
    arn: str
    material: Material
    state: str = "Enabled"
    deletion_date: float | None = None

    def metadata(self) -> dict[str, Any]:
        signs = not isinstance(self.material, bytes)
        spec, usage = ECC if signs else HMAC
        described = {
            "KeyId": self.key_id,
            "Arn": self.arn,
            "Enabled": self.state == "Enabled",
            "KeyState": self.state,
            "KeySpec": spec,
            "KeyUsage": usage,
            ("SigningAlgorithms" if signs else "MacAlgorithms"): [
                "ECDSA_SHA_256" if signs else "HMAC_SHA_256"
            ],
        }
        return described if self.deletion_date is None else {**described, "DeletionDate": self.deletion_date}

    def require_enabled(self) -> None:
        if self.state == "Disabled":
            raise KmsFault("DisabledException", f"{self.arn} is disabled")
        if self.state != "Enabled":
            raise KmsFault("KMSInvalidStateException", f"{self.arn} is {self.state}")

    def require_not_pending(self) -> None:
        if self.state == "PendingDeletion":
            raise KmsFault("KMSInvalidStateException", f"{self.arn} is pending deletion")

    def public_der(self) -> bytes:
        if isinstance(self.material, bytes):
            raise KmsFault("UnsupportedOperationException", f"{self.arn} has no public key")
        return self.material.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @property
    def secret(self) -> bytes:
        """The secret of an HMAC key. Raises KmsFault for a signing key."""
        if not isinstance(self.material, bytes):
            raise KmsFault("InvalidKeyUsageException", f"{self.arn} has no secret")
        return self.material

    def sign(self, message: bytes, message_type: str, algorithm: str, *, dry_run: bool) -> bytes:
        private = self._signing(algorithm)
        ecdsa = _ecdsa(message, message_type)
        _stop_if_dry(dry_run)
        return private.sign(message, ecdsa)

    def verify(
        self, signature: bytes, message: bytes, message_type: str, algorithm: str, *, dry_run: bool
    ) -> None:
        public = self._signing(algorithm).public_key()
        ecdsa = _ecdsa(message, message_type)
        _stop_if_dry(dry_run)
        try:
            public.verify(signature, message, ecdsa)
        except InvalidSignature:
            raise KmsFault("KMSInvalidSignatureException", "the signature is not valid") from None

    def mac(self, message: bytes, algorithm: str, *, dry_run: bool) -> bytes:
        if not isinstance(self.material, bytes) or algorithm != "HMAC_SHA_256":
            raise KmsFault("InvalidKeyUsageException", f"{self.arn} does not generate {algorithm}")
        _check_size(message)
        _stop_if_dry(dry_run)
        mac = hmac.HMAC(self.material, hashes.SHA256())
        mac.update(message)
        return mac.finalize()

    def _signing(self, algorithm: str) -> ec.EllipticCurvePrivateKey:
        if isinstance(self.material, bytes) or algorithm != "ECDSA_SHA_256":
            raise KmsFault("InvalidKeyUsageException", f"{self.arn} does not sign {algorithm}")
        return self.material


def _ecdsa(message: bytes, message_type: str) -> ec.ECDSA:
    _check_size(message)
    if message_type == "RAW":
        return ec.ECDSA(hashes.SHA256())
    if message_type != "DIGEST":
        raise KmsFault("ValidationException", f"MessageType {message_type!r} is neither RAW nor DIGEST")
    if len(message) != 32:
        raise KmsFault("ValidationException", "a digest for ECDSA_SHA_256 has 32 bytes")
    return ec.ECDSA(utils.Prehashed(hashes.SHA256()))


def _check_size(message: bytes) -> None:
    if not 1 <= len(message) <= MAX_MESSAGE:
        raise KmsFault("ValidationException", f"Message must have 1 to {MAX_MESSAGE} bytes")


def _stop_if_dry(dry_run: bool) -> None:
    if dry_run:
        raise KmsFault("DryRunOperationException", "the request would have succeeded")
