"""Create the KMS keys of the template.

Development keys are the same on every computer, so that a state is valid in the next run of a command. Anyone
can compute them. They are for events that a user passes to a function by hand: a server that others can reach
needs keys of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_tools.run.services.kms import ECC, HMAC, FakeKms, KmsFault, Material
from mcp_roundtrip_tools.template.intrinsics import Unresolvable
from mcp_roundtrip_tools.template.reader import TemplateKey

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the base point (SEC 2, 2.4.2): a private key is between 1 and this number."""


class TemplateKeys:
    """Creates each key once, so that tokens survive changes of the template. `arns` are by the keys' names.

    A key that is not emulated is Unresolvable.
    """

    def __init__(self, kms: FakeKms, *, development_keys: bool = False) -> None:
        self._kms = kms
        self._development_keys = development_keys
        self.arns: dict[str, str | Unresolvable] = {}

    def create(self, keys: Iterable[TemplateKey]) -> None:
        """Create the keys that do not exist yet."""
        for key in keys:
            if key.name not in self.arns:
                self.arns[key.name] = self._create(key)

    def name(self, key_id: str) -> str:
        """Return the name of a key, by its ARN or key id; otherwise the given text."""
        for name, arn in self.arns.items():
            if key_id and isinstance(arn, str) and arn.endswith(key_id):
                return name
        return key_id

    def _create(self, key: TemplateKey) -> str | Unresolvable:
        try:
            if self._development_keys and (key.spec, key.usage) in (ECC, HMAC):
                key_id = uuid5(NAMESPACE_URL, f"urn:mcp-roundtrip:development:{key.name}")
                arn = self._kms.import_key(_material(key), key_id=str(key_id))
            else:
                created = self._kms.CreateKey(KeySpec=key.spec, KeyUsage=key.usage)
                arn = str(created["KeyMetadata"]["Arn"])
            for alias in key.aliases:
                self._kms.CreateAlias(AliasName=alias, TargetKeyId=arn)
        except KmsFault as error:
            return Unresolvable(f"the key {key.name} is not emulated: {error.message}")
        return arn


def _material(key: TemplateKey) -> Material:
    secret = sha256(f"mcp-roundtrip development key {key.name}".encode()).digest()
    if (key.spec, key.usage) == HMAC:
        return secret
    number = int.from_bytes(secret, "big") % (_P256_ORDER - 1) + 1
    return ec.derive_private_key(number, ec.SECP256R1())
