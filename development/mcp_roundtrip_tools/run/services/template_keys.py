"""Create the KMS keys of the template.

Development keys are the same on every computer, so that a state is valid in the next run of a command. Anyone
can compute them. They are for events that a user passes to a function by hand: a server that others can reach
needs keys of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_tools.run.services.kms import HMAC, FakeKms, Material
from mcp_roundtrip_tools.template.model import TemplateKey

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the base point (SEC 2, 2.4.2): a private key is between 1 and this number."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of a run. `name` is a part of their ids, and `secret` that of which they are derived."""

    name: str = field(default_factory=lambda: secrets.token_hex(4))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def create(self, kms: FakeKms, keys: Iterable[TemplateKey]) -> None:
        """Create the keys that do not exist yet: tokens survive changes of the template."""
        for key in keys:
            if key.id not in kms.key_ids():
                kms.import_key(self._material(key), key_id=key.id)
                for alias in key.aliases:
                    kms.CreateAlias(AliasName=alias, TargetKeyId=key.id)

    def _material(self, key: TemplateKey) -> Material:
        digest = sha256(self.secret + key.name.encode()).digest()
        if key.spec == HMAC[0]:
            return digest
        number = int.from_bytes(digest, "big") % (_P256_ORDER - 1) + 1
        return ec.derive_private_key(number, ec.SECP256R1())


DEVELOPMENT_KEYS: Final = KeySet("development", b"mcp-roundtrip development key ")
