"""Create the KMS keys of the template."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_roundtrip_tools.run.services.development_keys import development_key_id, development_material
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms_key import KmsFault
from mcp_roundtrip_tools.template.intrinsics import Unresolvable
from mcp_roundtrip_tools.template.reader import TemplateKey


class TemplateKeys:
    """Creates each key once, so that tokens survive changes of the template. `arns` are by the keys' names.

    A key that is not emulated is Unresolvable. `development_keys`: see the module of this name.
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
            arn = self._create_key(key)
            for alias in key.aliases:
                self._kms.CreateAlias(AliasName=alias, TargetKeyId=arn)
        except KmsFault as error:
            return Unresolvable(f"the key {key.name} is not emulated: {error.message}")
        return arn

    def _create_key(self, key: TemplateKey) -> str:
        if self._development_keys:
            material = development_material(key.name, key.spec, key.usage)
            if material is not None:
                return self._kms.import_key(material, key_id=development_key_id(key.name))
        return str(self._kms.CreateKey(KeySpec=key.spec, KeyUsage=key.usage)["KeyMetadata"]["Arn"])
