"""Keys that are the same on every computer, so that a state is valid in the next run of a command.

Anyone can compute them. They are for events that a user passes to a function by hand: a server that others
can reach needs keys of its own.
"""

from __future__ import annotations

from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_tools.run.services.kms_key import ECC, HMAC, Material

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the base point (SEC 2, 2.4.2): a private key is between 1 and this number."""


def development_key_id(name: str) -> str:
    """Return the key id of a name."""
    return str(uuid5(NAMESPACE_URL, f"urn:mcp-roundtrip:development:{name}"))


def development_material(name: str, spec: str, usage: str) -> Material | None:
    """Return the material of a key of this KeySpec and KeyUsage; None if no such key is emulated."""
    secret = sha256(f"mcp-roundtrip development key {name}".encode()).digest()
    match spec, usage:
        case found if found == ECC:
            number = int.from_bytes(secret, "big") % (_P256_ORDER - 1) + 1
            return ec.derive_private_key(number, ec.SECP256R1())
        case found if found == HMAC:
            return secret
    return None
