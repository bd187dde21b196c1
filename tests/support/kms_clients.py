"""Clients of an emulated KMS, and codecs with its keys."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.signed_client import kernel_random
from mcp_roundtrip.deployment import state_codec_factory
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import StateProtection
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.aws_clients import DEFAULT_KIND, EmulatedService, OneClient
from support.fake_kms import serve
from support.tokens import BINDING, Configuration

client: Callable[..., Any] = partial(EmulatedService, "kms")

ROUND_TTL_S = 480
"""The setting of the codecs. It is not the default."""


@contextmanager
def running(kms: FakeKms, kind: str = DEFAULT_KIND) -> Iterator[Any]:
    with serve(kms) as server, closing(client(server.url, kind=kind)) as connected:
        yield connected


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

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the deployment."""
        encryption = (
            {
                "MCP_STATE_ENCRYPTION_KEY_ARN": self.mac_keys[0],
                "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": ",".join(self.mac_keys[1:]),
            }
            if self.mac_keys
            else {"MCP_STATE_ENCRYPTION": "disabled"}
        )
        return {
            "MCP_AUTH_MODE": "none",
            "MCP_ISSUER": BINDING.issuer,
            "MCP_AUDIENCE": BINDING.audience,
            "MCP_ROUND_TTL_S": f"{ROUND_TTL_S}",
            "MCP_STATE_SIGNING": "delegated" if self.delegated else "direct",
            "MCP_STATE_KEY_ARN": self.keys[0],
            "MCP_TRUSTED_STATE_KEY_ARNS": ",".join(self.keys[1:]),
            "MCP_REVOKED_CERTIFICATES": ",".join(self.revoked),
            **encryption,
        }

    def environment(
        self,
        kms: AwsClient,
        clock: Callable[[], float],
        *,
        random: Callable[[], float] = kernel_random,
        on_issued: Callable[[str, int], None] = lambda jti, expires_at: None,
        on_failed: Callable[[KeyServiceError], None] = lambda error: None,
    ) -> RequestStateCodec:
        """Return the codec of a new execution environment, which has not called KMS yet."""
        settings = load_settings(self.variables)
        ports = (OneClient(kms), clock, secrets.token_bytes, on_issued, on_failed)
        protection = StateProtection(settings, *ports)
        with patch.object(state_codec_factory, "kernel_random", random):
            return protection.codec


def deployment(kms: Any, configuration: Configuration) -> Deployment:
    """Create keys in KMS, and return a deployment that uses them."""
    mac_keys = [mac_key(kms)] if configuration.encrypted else []
    return Deployment([signing_key(kms)], mac_keys, configuration.delegated)


def fails_with(reason: str) -> Any:
    return pytest.raises(KeyServiceError, check=lambda failure: failure.reason == reason)
