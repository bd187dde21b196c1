"""AWS KMS as signer, source of public keys and MAC key.

Keys are identified only by their ARN. The `kid` of a token is never sent to KMS: GetPublicKey works across
accounts, so an attacker could name another key. An alias could move between GetPublicKey and Sign, and tokens
would name one key and be signed by another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.state import jws
from mcp_roundtrip.state.jwe import short_key_id

MAX_RAW_BYTES = 4096
"""The limit in bytes of a message that Sign takes unhashed (AWS KMS API Reference, Sign)."""

CONFIRM_INTERVAL_S = 900
"""The interval of the GetPublicKey calls that confirm that the key is still enabled."""

MAX_UNCONFIRMED_S = 3600
"""The time for which a public key is trusted without a confirmation, while KMS is not available."""

_WITHDRAWN = frozenset({"DisabledException", "KMSInvalidStateException", "NotFoundException"})


def public_half(spki: bytes) -> jws.VerificationKey:
    """Return the public half of an ECC_NIST_P256 key from its SubjectPublicKeyInfo. Raises ValueError."""
    try:
        public_key = load_der_public_key(spki)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None
    if not isinstance(public_key, EllipticCurvePublicKey):
        raise ValueError("not an elliptic curve key")
    return jws.VerificationKey(public_key, jws.kid_of(public_key))


def pinned_half(arn: str, public_keys: Mapping[str, bytes]) -> jws.VerificationKey:
    """Return the public half of a signing key from the settings. Raises SettingsError if they have none."""
    try:
        return public_half(public_keys[arn.rpartition("/")[2]])
    except KeyError:
        raise SettingsError(
            "MCP_STATE_PUBLIC_KEYS", f"has no public key for {arn}; add it as <key id>:<Base64>"
        ) from None
    except ValueError as error:
        raise SettingsError(
            "MCP_STATE_PUBLIC_KEYS", f"has no P-256 key for {arn}; copy it from `aws kms get-public-key`"
        ) from error


class KmsKey:
    """A KMS key that signs. Its public half is loaded at first use and confirmed every `CONFIRM_INTERVAL_S`.

    A key that KMS reports as disabled, pending deletion or unknown is not trusted any more. A `pinned` public
    half is not loaded from KMS: after the key is disabled, signing fails, but verification continues.
    `clock` returns epoch seconds.
    """

    def __init__(
        self,
        client: AwsClient,
        arn: str,
        clock: Callable[[], float],
        pinned: jws.VerificationKey | None = None,
    ) -> None:
        self.arn = arn
        self._client = client
        self._clock = clock
        self._pinned = self._loaded = pinned
        self._confirmed_at = self._trusted_until = float("-inf")
        # Requests need a key that is not trusted, so the first pauses are short.
        self._loading = jws.Backoff(clock, jws.FIRST_RETRY_S)
        self._confirming = jws.Backoff(clock)
        self._failure = ("", "")

    @property
    def kid(self) -> str | None:
        """The key id in tokens; None before the public half is loaded."""
        return None if self._loaded is None else self._loaded.kid

    def loaded_public_half(self) -> jws.VerificationKey:
        """Return the public half, trusted or not. Raises KeyServiceError if it was never loaded."""
        return self._loaded or self.trusted_public_half()

    def trusted_public_half(self) -> jws.VerificationKey:
        """Return the public half. Raises KeyServiceError if it is not trusted now."""
        if self._pinned is not None:
            return self._pinned
        now = self._clock()
        if not self._confirmed_at <= now < self._confirmed_at + CONFIRM_INTERVAL_S:  # or it was set back
            self._confirm(now)
        if self._loaded is None or now >= self._trusted_until:
            raise KeyServiceError(*self._failure)
        return self._loaded

    def _confirm(self, now: float) -> None:
        backoff = self._confirming if now < self._trusted_until else self._loading
        try:
            self._loaded = backoff.attempt(self._load)
        except KeyServiceError as failure:
            self._failure = (failure.reason, str(failure))
            # Also if the clock was set back.
            trusted_until = now if failure.reason in _WITHDRAWN else now + MAX_UNCONFIRMED_S
            self._trusted_until = min(self._trusted_until, trusted_until)
        else:
            self._confirmed_at, self._trusted_until = now, now + MAX_UNCONFIRMED_S

    def _load(self) -> jws.VerificationKey:
        with _as_key_service_errors():
            answer = self._client.call("GetPublicKey", KeyId=self.arn)
            return public_half(answer["PublicKey"])


class KmsPublicKeys:
    """The trusted keys. Finding one needs no KMS call while all are confirmed."""

    def __init__(self, keys: Iterable[KmsKey]) -> None:
        self._keys = tuple(keys)

    def find(self, kid: str) -> jws.VerificationKey | None:
        """Return the key with this id, or None.

        Raises KeyServiceError if no key is trusted, or if a key that was never loaded may have this id.
        """
        is_any_trusted, knows_all = False, True
        failure = KeyServiceError("no_key_configured")
        # First the key with this id: another one may not be available.
        for key in sorted(self._keys, key=lambda key: key.kid != kid):
            try:
                half = key.trusted_public_half()
            except KeyServiceError as error:
                failure = error
                knows_all = knows_all and key.kid is not None
                continue
            if half.kid == kid:
                return half
            is_any_trusted = True
        if not (knows_all and is_any_trusted):
            raise failure
        return None


class KmsSigner:
    """Signs with one kms:Sign call for each token."""

    def __init__(self, client: AwsClient, key: KmsKey) -> None:
        self._client = client
        self._key = key

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"kid": self._key.loaded_public_half().kid}

    def sign(self, signing_input: bytes) -> bytes:
        """Return 64 bytes r‖s. Raises KeyServiceError: the AWS error code, `timeout` or another reason."""
        raw = len(signing_input) <= MAX_RAW_BYTES
        with _as_key_service_errors():
            answer = self._client.call(
                "Sign",
                KeyId=self._key.arn,
                Message=signing_input if raw else hashlib.sha256(signing_input).digest(),
                MessageType="RAW" if raw else "DIGEST",
                SigningAlgorithm="ECDSA_SHA_256",
            )
            if answer["KeyId"] != self._key.arn:
                raise KeyServiceError("signed_by_another_key")
            signature = jws.raw_signature(answer["Signature"])
        # With a wrong public key for the ARN, no token would be valid.
        public_key = self._key.loaded_public_half().public_key
        if not jws.is_valid_signature(signature, signing_input, public_key):
            raise KeyServiceError("public_key_of_another_key")
        return signature


class KmsMacKey:
    """A KMS key (HMAC_256, GENERATE_VERIFY_MAC) that epoch keys are derived from."""

    def __init__(self, client: AwsClient, arn: str) -> None:
        self._client = client
        self._arn = arn
        # The id of a multi-Region key is the same in all Regions; its ARN is not.
        self.short_key_id = short_key_id(arn.rpartition("/")[2])

    def mac(self, message: bytes) -> bytes:
        """Return 32 bytes. Raises KeyServiceError with the AWS error code, `timeout` or another reason."""
        with _as_key_service_errors():
            answer = self._client.call(
                "GenerateMac", KeyId=self._arn, Message=message, MacAlgorithm="HMAC_SHA_256"
            )
            mac = answer["Mac"]
            if answer["KeyId"] != self._arn or not isinstance(mac, bytes) or len(mac) != 32:
                raise KeyServiceError("malformed_answer")
            return mac


@contextmanager
def _as_key_service_errors() -> Iterator[None]:
    try:
        yield
    except KeyServiceError:
        raise
    except AwsError as error:
        raise KeyServiceError(error.code, str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise KeyServiceError("malformed_answer") from error
    except Exception as error:  # the codec takes any other exception for a fault of the token
        raise KeyServiceError(type(error).__name__) from error
