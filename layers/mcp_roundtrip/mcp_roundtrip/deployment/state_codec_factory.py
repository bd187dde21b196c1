"""Create the codec of states and the signer of links. Calls without a round trip do not import this."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final

from msgspec import Struct

from mcp_roundtrip.aws.client_interface import AwsClient, ClientFactory
from mcp_roundtrip.aws.kms import KmsKey, KmsMacKey, KmsPublicKeys, KmsSigner, pinned_half
from mcp_roundtrip.aws.signed_client import kernel_random
from mcp_roundtrip.deployment.settings import PREFIX, Settings
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import Backoff, PublicKeys, Signer
from mcp_roundtrip.state.signing_key_certificates import Delegation, TrustedKeys
from mcp_roundtrip.state.url_elicitation_links import Links

# A key's own ARN is required: an alias can be moved to another key while its public key is cached.
_KEY_ARN: Final = r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+"


class StateProtection(Struct, dict=True, eq=False):  # dict: for cached_property
    """The codec of states and the signer of links, with their KMS keys. Each is created at its first use.

    `clock` returns epoch seconds. `on_certificate_issued` takes the id and the expiry of a new certificate,
    `on_renewal_failed` why a key was not renewed, while the old one is still used.
    """

    settings: Settings
    clients: ClientFactory
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    on_certificate_issued: Callable[[str, int], None]
    on_renewal_failed: Callable[[KeyServiceError], None] = lambda error: None

    @cached_property
    def codec(self) -> RequestStateCodec:
        signer, keys = self._keys
        delegates = self.settings.state_signing == "delegated"
        encrypts = self.settings.state_encryption == "enabled"
        return RequestStateCodec(
            signer=self._delegation(signer) if delegates else lambda: signer,
            trusted_keys=TrustedKeys(keys, self.settings.revoked_certificates),
            epochs=self._epochs() if encrypts else None,
            limits=self._limits,
            clock=self.clock,
            random_bytes=self.random_bytes,
        )

    @cached_property
    def links(self) -> Links:
        # KMS signs links even with delegated signing, because a link may outlast a certificate.
        signer, keys = self._keys
        issuer, audience = self.settings.state_issuer, self.settings.required("audience")
        return Links(signer, keys, issuer, audience, self.clock, self.random_bytes)

    @cached_property
    def _kms(self) -> AwsClient:
        return self.clients.client("kms")

    @cached_property
    def _renewals(self) -> Backoff:
        return Backoff(self.clock, on_failure=self.on_renewal_failed)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(round_ttl_s=self.settings.round_ttl_s, flow_ttl_s=self.settings.flow_ttl_s)

    @cached_property
    def _keys(self) -> tuple[Signer, PublicKeys]:
        self.settings.required("state_key_arn")
        arns = key_arns(self.settings, "state_key_arn", "trusted_state_key_arns")
        pinned = self.settings.state_public_keys
        halves = [pinned_half(arn, pinned) if pinned else None for arn in arns]
        keys = [KmsKey(self._kms, arn, self.clock, half) for arn, half in zip(arns, halves, strict=True)]
        return KmsSigner(self._kms, keys[0]), KmsPublicKeys(keys)

    def _delegation(self, root: Signer) -> Callable[[], Signer]:
        return Delegation(
            root=root,
            issuer=self.settings.state_issuer,
            audience=self.settings.required("audience"),
            limits=self._limits,
            clock=self.clock,
            random_bytes=self.random_bytes,
            random=kernel_random,
            renewals=self._renewals,
            on_issued=self.on_certificate_issued,
        ).signer

    def _epochs(self) -> EpochKeys:
        self.settings.required("state_encryption_key_arn")
        arns = key_arns(self.settings, "state_encryption_key_arn", "trusted_state_encryption_key_arns")
        return EpochKeys(
            [KmsMacKey(self._kms, arn) for arn in arns],
            STATE_TYP,
            self._limits,
            issuer=self.settings.state_issuer,
            clock=self.clock,
            random=kernel_random,
            renewals=self._renewals,
        )


def key_arns(settings: Settings, *names: str) -> tuple[str, ...]:
    """Return the ARNs of the KMS keys in these settings. Raises SettingsError for anything else."""
    arns: list[str] = []
    for name in names:
        value: str | tuple[str, ...] | None = getattr(settings, name)
        given = (value,) if isinstance(value, str) else value or ()
        if not all(re.fullmatch(_KEY_ARN, each) for each in given):
            raise SettingsError(PREFIX + name.upper(), "must be the ARN of a KMS key, and not an alias")
        arns += given
    return tuple(arns)
