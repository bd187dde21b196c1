"""AWS KMS as signer, as source of public keys and as MAC key.

Keys are named by their ARN alone. The `kid` of a token never reaches KMS: GetPublicKey works across accounts,
so an attacker's own key could be named. An alias does not either: were it moved between reading the public
key and signing, every token would name one key and be signed by another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mcp_roundtrip.aws.clients import AWS_ERRORS, error_reason
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.epochs import short_key_id
from mcp_roundtrip.state.keys import is_valid, kid_of, raw_signature
from mcp_roundtrip.state.renewal import RENEWAL_RETRY_S, retry_pause_s

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

MAX_RAW = 4096
"""The most bytes Sign takes as they are (AWS KMS API Reference, Sign); above, it gets their digest."""

MAX_AGE_S = 900
"""How long a public key is used without asking KMS whether the key is still enabled."""

MAX_UNCONFIRMED_S = 3600
"""How long a public key is used after KMS last confirmed it, while KMS is throttled or out of reach."""

_WITHDRAWN = frozenset({"DisabledException", "KMSInvalidStateException", "NotFoundException"})


@dataclass(frozen=True, slots=True)
class PublicHalf:
    """The public half of a KMS key (ECC_NIST_P256, SIGN_VERIFY), and the id that tokens know it by."""

    public_key: EllipticCurvePublicKey
    kid: str

    @classmethod
    def from_der(cls, spki: bytes) -> PublicHalf:
        """From the SubjectPublicKeyInfo that GetPublicKey returns. ValueError for a key not on P-256."""
        try:
            public_key = load_der_public_key(spki)
        except UnsupportedAlgorithm as error:
            raise ValueError(str(error)) from None
        if not isinstance(public_key, EllipticCurvePublicKey):
            raise ValueError("not an elliptic curve key")
        return cls(public_key, kid_of(public_key))


class StateKey(Protocol):
    """A KMS key whose public half this environment can have."""

    @property
    def arn(self) -> str: ...

    @property
    def kid(self) -> str | None:
        """The id of its public half, None while that was never loaded."""
        ...

    def known(self) -> PublicHalf:
        """It, whether or not KMS was asked lately. Raises KeyServiceError if it was never loaded."""
        ...

    def trusted(self) -> PublicHalf:
        """It, if its signatures count now. Raises KeyServiceError otherwise."""
        ...


@dataclass(frozen=True, slots=True)
class PinnedKey:
    """A key whose public half came with the deployment.

    KMS is not asked for it, so disabling the key stops signing, and checking goes on.
    """

    arn: str
    public_half: PublicHalf

    @property
    def kid(self) -> str:
        return self.public_half.kid

    def known(self) -> PublicHalf:
        return self.public_half

    def trusted(self) -> PublicHalf:
        return self.public_half


class KmsKey:
    """A key whose public half is loaded at first use and confirmed every `MAX_AGE_S`.

    A key that KMS says is disabled, being deleted or unknown is no longer trusted from then on; when KMS
    cannot be asked, the key lasts `MAX_UNCONFIRMED_S` from the last answer.
    """

    def __init__(self, client: KMSClient, arn: str, clock: Callable[[], float]) -> None:
        """`clock` returns epoch seconds."""
        self.arn = arn
        self._client = client
        self._clock = clock
        self._loaded: PublicHalf | None = None
        self._asked_at = self._ask_at = self._trusted_until = float("-inf")
        self._failures = 0
        self._reason = ""

    @property
    def kid(self) -> str | None:
        return None if self._loaded is None else self._loaded.kid

    def known(self) -> PublicHalf:
        return self._loaded or self.trusted()

    def trusted(self) -> PublicHalf:
        now = self._clock()
        if not self._asked_at <= now < self._ask_at:  # in particular when the clock was set back
            self._ask(now)
        if self._loaded is None or now >= self._trusted_until:
            raise KeyServiceError(self._reason)
        return self._loaded

    def _ask(self, now: float) -> None:
        self._asked_at = now
        try:
            with _as_key_service_errors():
                answer = self._client.get_public_key(KeyId=self.arn)
                self._loaded = PublicHalf.from_der(answer["PublicKey"])
        except KeyServiceError as failure:
            self._failed(failure.reason, now)
        else:
            self._ask_at, self._trusted_until = now + MAX_AGE_S, now + MAX_UNCONFIRMED_S

    def _failed(self, reason: str, now: float) -> None:
        self._reason = reason
        if reason in _WITHDRAWN:
            self._trusted_until = now
        # However far the clock was set back.
        self._trusted_until = min(self._trusted_until, now + MAX_UNCONFIRMED_S)
        # Whoever asks for the first time needs the key, so the pauses begin short. They begin when the call
        # has failed, not when it began: it may have taken longer than the pause.
        self._failures += 1
        pause_s = retry_pause_s(self._failures) if self._loaded is None else RENEWAL_RETRY_S
        self._ask_at = self._clock() + pause_s


class KmsPublicKeys:
    """The keys whose tokens are accepted. Finding one costs no KMS call while all are fresh."""

    def __init__(self, keys: Iterable[StateKey]) -> None:
        self._keys = tuple(keys)

    def find(self, kid: str) -> EllipticCurvePublicKey | None:
        """The key of that id, or None.

        Raises KeyServiceError when none can be trusted, or when it may be one that could not be loaded yet.
        """
        is_any_trusted, knows_all = False, True
        failure = KeyServiceError("no_key_configured")
        # The one that is known by that name first: another one may be out of reach.
        for key in sorted(self._keys, key=lambda key: key.kid != kid):
            try:
                half = key.trusted()
            except KeyServiceError as error:
                failure = error
                knows_all = knows_all and key.kid is not None
                continue
            if half.kid == kid:
                return half.public_key
            is_any_trusted = True
        if not (knows_all and is_any_trusted):
            raise failure
        return None


class KmsSigner:
    """Signs by one call of kms:Sign each."""

    def __init__(self, client: KMSClient, key: StateKey) -> None:
        self._client = client
        self._key = key
        self._is_proven = False

    @property
    def key_members(self) -> Mapping[str, str]:
        return {"kid": self._key.known().kid}

    def sign(self, signing_input: bytes) -> bytes:
        """64 bytes r‖s. Raises KeyServiceError with the AWS error code, `timeout`, or what is wrong."""
        raw = len(signing_input) <= MAX_RAW
        with _as_key_service_errors():
            answer = self._client.sign(
                KeyId=self._key.arn,
                Message=signing_input if raw else hashlib.sha256(signing_input).digest(),
                MessageType="RAW" if raw else "DIGEST",
                SigningAlgorithm="ECDSA_SHA_256",
            )
            if answer["KeyId"] != self._key.arn:
                raise KeyServiceError("signed_by_another_key")
            signature = raw_signature(answer["Signature"])
        self._prove(signature, signing_input)
        return signature

    def _prove(self, signature: bytes, signing_input: bytes) -> None:
        """Check the first signature: a public key pinned to the wrong ARN would spoil every token."""
        if not self._is_proven and not is_valid(signature, signing_input, self._key.known().public_key):
            raise KeyServiceError("public_key_of_another_key")
        self._is_proven = True


class KmsMacKey:
    """A KMS key (HMAC_256, GENERATE_VERIFY_MAC) from which epoch keys are derived."""

    def __init__(self, client: KMSClient, arn: str) -> None:
        self._client = client
        self._arn = arn
        # The id of a multi-Region key is the same in every Region, its ARN is not.
        self.short_key_id = short_key_id(arn.rpartition("/")[2])

    def mac(self, message: bytes) -> bytes:
        """32 bytes. Raises KeyServiceError with the AWS error code, `timeout`, or what is wrong."""
        with _as_key_service_errors():
            answer = self._client.generate_mac(KeyId=self._arn, Message=message, MacAlgorithm="HMAC_SHA_256")
            if answer["KeyId"] != self._arn or len(answer["Mac"]) != 32:
                raise KeyServiceError("malformed_answer")
            return answer["Mac"]


@contextmanager
def _as_key_service_errors() -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise KeyServiceError(error_reason(error)) from error
    except (KeyError, ValueError) as error:
        raise KeyServiceError("malformed_answer") from error
