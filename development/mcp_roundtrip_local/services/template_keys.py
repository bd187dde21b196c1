"""Create the KMS keys of the template."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_roundtrip_local.services.kms import FakeKms
from mcp_roundtrip_local.services.kms_key import KmsFault
from mcp_roundtrip_local.template.model import TemplateError
from mcp_roundtrip_local.template.reader import TemplateKey


class TemplateKeys:
    """Creates each key once, so that tokens survive changes of the template. `arns` are by logical id."""

    def __init__(self, kms: FakeKms) -> None:
        self._kms = kms
        self.arns: dict[str, str] = {}

    def create(self, keys: Iterable[TemplateKey]) -> None:
        """Create the keys that do not exist yet. Raises TemplateError for a key spec that is not emulated."""
        for key in keys:
            if key.logical_id not in self.arns:
                self.arns[key.logical_id] = self._create(key)

    def name(self, key_id: str) -> str:
        """Return the logical id of a key, by its ARN or key id; otherwise the given text."""
        for logical_id, arn in self.arns.items():
            if key_id and arn.endswith(key_id):
                return logical_id
        return key_id

    def _create(self, key: TemplateKey) -> str:
        try:
            metadata = self._kms.CreateKey(KeySpec=key.spec, KeyUsage=key.usage)["KeyMetadata"]
            for alias in key.aliases:
                self._kms.CreateAlias(AliasName=alias, TargetKeyId=metadata["KeyId"])
        except KmsFault as error:
            raise TemplateError(f"{key.logical_id}: {error.message}") from None
        return str(metadata["Arn"])
