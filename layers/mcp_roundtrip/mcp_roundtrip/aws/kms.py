"""AWS KMS as signer and as source of public keys.

The `kid` of a token never reaches KMS: GetPublicKey works across accounts, so an attacker's own key could be
named. Only configured keys are loaded, when time says so, whatever tokens arrive.

An alias is resolved once per process, to the ARN in GetPublicKey's answer, and everything after goes by that
ARN: were the alias moved between reading the public key and signing, every token would name one key and be
signed by another. Configure ARNs where a key's replacement must not wait for new processes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mcp_roundtrip.errors import KeyServiceError
from mcp_roundtrip.state.keys import kid_of, raw_signature

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

MAX_RAW = 4096
"""The most bytes Sign takes as they are (AWS KMS API Reference, Sign); above, it gets their digest."""

MAX_UNCONFIRMED_S = 3600
"""How long a public key is used after KMS last confirmed it, while KMS is throttled or out of reach."""

RETRY_S = 1
"""How long a failed load is left alone: a flood of forgeries must not become a flood of calls."""

_WITHDRAWN = frozenset({"DisabledException", "KMSInvalidStateException", "NotFoundException"})


def kms_client(region: str | None = None, endpoint_url: str | None = None) -> KMSClient:
    """A KMS client that gives up in time for an answer: connect 1 s, read 2 s, three attempts.

    Region and endpoint come from the environment, as for every AWS SDK, unless they are given.
    """
    config = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
    return boto3.client("kms", region_name=region, endpoint_url=endpoint_url, config=config)


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """The public half of a KMS key."""

    arn: str
    kid: str
    public_key: EllipticCurvePublicKey


class KmsKey:
    """One KMS key (ECC_NIST_P256, SIGN_VERIFY), its public half loaded at first use and kept.

    KMS is asked again every `ttl_s`. A key that it says is disabled, being deleted or unknown is no longer
    trusted from then on; when it cannot be asked, the key lasts `MAX_UNCONFIRMED_S` from the last answer.
    """

    def __init__(self, client: KMSClient, key_id: str, clock: Callable[[], float], ttl_s: int = 900) -> None:
        """`key_id` is the key's ARN, id or alias; `clock` returns epoch seconds."""
        self._client = client
        self._key_id = key_id
        self._clock = clock
        self._ttl_s = ttl_s
        self._loaded: LoadedKey | None = None
        self._ask_at = self._trusted_until = float("-inf")
        self._reason = ""

    def resolved(self) -> LoadedKey:
        """The key, whether or not KMS was asked lately. Raises KeyServiceError if it was never loaded."""
        return self._loaded or self.trusted()

    def trusted(self) -> LoadedKey:
        """The key, if KMS confirmed it lately enough. Raises KeyServiceError otherwise."""
        now = self._clock()
        if now >= self._ask_at:
            self._ask(now)
        if self._loaded is None or now >= self._trusted_until:
            raise KeyServiceError(self._reason)
        return self._loaded

    def _ask(self, now: float) -> None:
        try:
            self._loaded = self._load()
        except KeyServiceError as failure:
            self._reason = failure.reason
            self._ask_at = now + RETRY_S
            if failure.reason in _WITHDRAWN:
                self._trusted_until = now
        else:
            self._ask_at = now + self._ttl_s
            self._trusted_until = now + max(self._ttl_s, MAX_UNCONFIRMED_S)

    def _load(self) -> LoadedKey:
        with _as_key_service_errors():
            answer = self._client.get_public_key(
                KeyId=self._key_id if self._loaded is None else self._loaded.arn
            )
            public_key = load_der_public_key(answer["PublicKey"])
            if not isinstance(public_key, EllipticCurvePublicKey):
                raise ValueError("not an elliptic curve key")
            return LoadedKey(answer["KeyId"], kid_of(public_key), public_key)


class KmsPublicKeys:
    """The keys whose tokens are accepted. Finding one costs no KMS call while all are fresh."""

    def __init__(
        self, client: KMSClient, key_ids: Iterable[str], clock: Callable[[], float], ttl_s: int = 900
    ) -> None:
        """Trust the keys of these ARNs, ids or aliases; `clock` returns epoch seconds."""
        self._keys = {key_id: KmsKey(client, key_id, clock, ttl_s) for key_id in key_ids}

    def key(self, key_id: str) -> KmsKey:
        """The key that was configured as `key_id`. Raises KeyError."""
        return self._keys[key_id]

    def find(self, kid: str) -> EllipticCurvePublicKey | None:
        """The key of that id, or None. Raises KeyServiceError when not a single key can be trusted."""
        trusted: dict[str, EllipticCurvePublicKey] = {}
        failure = KeyServiceError("no_key_configured")
        for key in self._keys.values():
            try:
                loaded = key.trusted()
            except KeyServiceError as error:
                failure = error
            else:
                trusted[loaded.kid] = loaded.public_key
        if not trusted:
            raise failure
        return trusted.get(kid)


class KmsSigner:
    """Signs by one call of kms:Sign for every token."""

    def __init__(self, client: KMSClient, key_id: str, public_keys: KmsPublicKeys | None = None) -> None:
        """Sign with the key of this ARN, id or alias.

        With the `public_keys` that trust it, its public half is loaded once for both.
        """
        self._client = client
        self._key = public_keys.key(key_id) if public_keys else KmsKey(client, key_id, time.monotonic)

    @property
    def kid(self) -> str:
        return self._key.resolved().kid

    def sign(self, signing_input: bytes) -> bytes:
        """64 bytes r‖s. Raises KeyServiceError with the AWS error code, `timeout`, or what is wrong."""
        raw = len(signing_input) <= MAX_RAW
        arn = self._key.resolved().arn
        with _as_key_service_errors():
            answer = self._client.sign(
                KeyId=arn,
                Message=signing_input if raw else hashlib.sha256(signing_input).digest(),
                MessageType="RAW" if raw else "DIGEST",
                SigningAlgorithm="ECDSA_SHA_256",
            )
            if answer["KeyId"] != arn:
                raise KeyServiceError("signed_by_another_key")
            return raw_signature(answer["Signature"])


@contextmanager
def _as_key_service_errors() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise KeyServiceError(error.response["Error"]["Code"]) from error
    except (ConnectTimeoutError, ReadTimeoutError) as error:
        raise KeyServiceError("timeout") from error
    except BotoCoreError as error:
        raise KeyServiceError(type(error).__name__) from error
    except (KeyError, ValueError) as error:
        raise KeyServiceError("malformed_answer") from error
