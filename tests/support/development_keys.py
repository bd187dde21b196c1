"""Keys that anyone can compute, and the settings of a deployment that has them, for tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

DEVELOPMENT_KEY_ID = "00000000-0000-4000-8000-000000000001"
DEVELOPMENT_MAC_KEY_ID = "00000000-0000-4000-8000-000000000002"
DEVELOPMENT_ENVIRONMENT: Mapping[str, str] = {
    "MCP_AUTH_MODE": "none",
    "MCP_ISSUER": "urn:mcp-roundtrip:development",
    "MCP_AUDIENCE": "http://127.0.0.1:3000/mcp",
    "MCP_STATE_KEY_ARN": f"arn:aws:kms:us-east-1:000000000000:key/{DEVELOPMENT_KEY_ID}",
    "MCP_STATE_ENCRYPTION_KEY_ARN": f"arn:aws:kms:us-east-1:000000000000:key/{DEVELOPMENT_MAC_KEY_ID}",
    "MCP_TASK_TABLE": "mcp-roundtrip-development",
    "MCP_TASK_WORKER": "arn:aws:lambda:us-east-1:000000000000:function:ProvisionWorkerFunction",
}


def development_key() -> EllipticCurvePrivateKey:
    """Return the private key of DEVELOPMENT_ENVIRONMENT. It is public and protects nothing."""
    from cryptography.hazmat.primitives.asymmetric import ec  # the stable events need no key

    secret = int.from_bytes(sha256(b"mcp-roundtrip development key").digest(), "big")
    return ec.derive_private_key(secret, ec.SECP256R1())


def development_secret() -> bytes:
    """Return the secret of DEVELOPMENT_ENVIRONMENT's encryption key, also public."""
    return sha256(b"mcp-roundtrip development encryption key").digest()


def development_ports() -> Ports:
    """Return ports with the keys of DEVELOPMENT_ENVIRONMENT in memory."""
    from mcp_roundtrip.state.jws import LocalKey
    from mcp_roundtrip_testing.ports import (
        LocalMacKey,  # the stable events need no state
        make_codec,
    )

    mac_key = LocalMacKey(DEVELOPMENT_MAC_KEY_ID, development_secret())
    issuer = DEVELOPMENT_ENVIRONMENT["MCP_ISSUER"]
    codec = make_codec(LocalKey(development_key()), time.time, mac_key=mac_key, issuer=issuer)
    return replace(wiring.make_ports(load_settings(DEVELOPMENT_ENVIRONMENT)), state_codec=lambda: codec)
