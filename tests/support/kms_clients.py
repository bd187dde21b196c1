"""Clients of an emulated KMS, and codecs with its keys."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from mcp_roundtrip.aws.kms import KmsKey, KmsMacKey, KmsPublicKeys, KmsSigner
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.certificates import Delegation, TrustedKeys
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import Backoff
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.aws_clients import DEFAULT_KIND, EmulatedService
from support.fake_kms import serve
from support.tokens import BINDING, Configuration

_random = secrets.SystemRandom().random


client: Callable[..., Any] = partial(EmulatedService, "kms")


@contextmanager
def running(kms: FakeKms, kind: str = DEFAULT_KIND) -> Iterator[Any]:
    with serve(kms) as server:
        connected = client(server.url, kind=kind)
        try:
            yield connected
        finally:
            connected.close()


def signing_key(kms: Any) -> str:
    return str(kms.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"])


def mac_key(kms: Any) -> str:
    return str(kms.create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"])


@dataclass(frozen=True)
class Deployment:
    """The key settings of a deployment: ARNs of keys, of which the first protects new states."""

    keys: Sequence[str]
    mac_keys: Sequence[str] = ()
    delegated: bool = False
    revoked: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)

    def environment(
        self,
        kms: Any,
        clock: Callable[[], float],
        *,
        random: Callable[[], float] = _random,
        on_issued: Callable[[str, int], None] = lambda jti, expires_at: None,
    ) -> RequestStateCodec:
        """Return the codec of a new execution environment, which has not called KMS yet."""
        renewals = Backoff(clock)
        keys = [KmsKey(kms, arn, clock) for arn in self.keys]
        signer = KmsSigner(kms, keys[0])
        delegation = Delegation(
            root=signer,
            issuer=BINDING.issuer,
            audience=BINDING.audience,
            limits=self.limits,
            clock=clock,
            random_bytes=secrets.token_bytes,
            random=random,
            renewals=renewals,
            on_issued=on_issued,
        )
        mac_keys = [KmsMacKey(kms, arn) for arn in self.mac_keys]
        options: dict[str, Any] = {"clock": clock, "random": random, "renewals": renewals}
        options["issuer"] = BINDING.issuer
        return RequestStateCodec(
            signer=delegation.signer if self.delegated else lambda: signer,
            trusted_keys=TrustedKeys(KmsPublicKeys(keys), self.revoked),
            epochs=EpochKeys(mac_keys, STATE_TYP, self.limits, **options) if mac_keys else None,
            limits=self.limits,
            clock=clock,
            random_bytes=secrets.token_bytes,
        )


def deployment(kms: Any, configuration: Configuration) -> Deployment:
    """Create keys in KMS, and return a deployment that uses them."""
    mac_keys = [mac_key(kms)] if configuration.encrypted else []
    return Deployment([signing_key(kms)], mac_keys, configuration.delegated)


def fails_with(reason: str) -> Any:
    return pytest.raises(KeyServiceError, check=lambda failure: failure.reason == reason)
