"""A fake KMS with P-256 signing keys and HMAC keys that is as strict as AWS.

It enforces message sizes, digest lengths, key usage, key states and dry runs, where emulators do not. Key
policies and grants are not evaluated. The operations are methods of `FakeKms` under their AWS names, which
`kms_api` serves over HTTP.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_tools.run.services.kms_key import ECC, HMAC, Key, KmsFault, Material, checked_material

Answer = dict[str, Any]

OPERATIONS: set[str] = set()
MEMBERS: dict[str, type] = {
    "AliasName": str,
    "Description": str,
    "DryRun": bool,
    "KeyId": str,
    "KeySpec": str,
    "KeyUsage": str,
    "MacAlgorithm": str,
    "Message": bytes,
    "MessageType": str,
    "PendingWindowInDays": int,
    "Policy": str,
    "Signature": bytes,
    "SigningAlgorithm": str,
    "TargetKeyId": str,
}


def _operation(method: Callable[..., Answer]) -> Callable[..., Answer]:
    """Wrap an operation: count the call, inject a requested failure, and check the types of the members."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def operation(self: FakeKms, **members: Any) -> Answer:
        with self._lock:
            self.calls[method.__name__] += 1
            self._inject_failure(method.__name__)
            try:
                signature.bind(self, **members)
            except TypeError as error:
                raise KmsFault("ValidationException", str(error)) from None
            for name, value in members.items():
                if not isinstance(value, MEMBERS[name]):
                    raise KmsFault("SerializationException", f"{name} must be {MEMBERS[name].__name__}")
            return method(self, **members)

    OPERATIONS.add(method.__name__)
    return operation


class FakeKms:
    """The keys and aliases of an account and Region. Thread-safe.

    `calls` counts the calls of each operation, including failed ones. Operations raise KmsFault.
    """

    def __init__(
        self,
        *,
        region: str = "us-east-1",
        account: str = "000000000000",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.calls: Counter[str] = Counter()
        self._prefix = f"arn:aws:kms:{region}:{account}:"
        self._clock = clock
        self._keys: dict[str, Key] = {}
        self._aliases: dict[str, str] = {}
        self._failures: list[tuple[str | None, str]] = []
        self._lock = threading.RLock()

    def fail_next(
        self, count: int, code: str = "ThrottlingException", *, operation: str | None = None
    ) -> None:
        """Answer the next `count` calls (of `operation`, if it is given) with the error `code`."""
        with self._lock:
            self._failures += [(operation, code)] * count

    def import_key(self, material: Material, *, key_id: str | None = None) -> str:
        """Add a key with the given material and return its ARN, so that processes can share the key.

        `material` is a P-256 private key, the PEM text of one, or a 32-byte HMAC secret. `key_id` defaults to
        a new UUID. Raises ValueError for other material and for a key id that exists.
        """
        material = checked_material(material)
        key_id = key_id or str(uuid.uuid4())
        with self._lock:
            if key_id in self._keys:
                raise ValueError(f"key {key_id} exists")
            self._keys[key_id] = Key(key_id, f"{self._prefix}key/{key_id}", material)
            return self._keys[key_id].arn

    def key(self, key_id: str) -> Key:
        """Return a key that is enabled. Unlike an operation, this is not counted. Raises KmsFault."""
        with self._lock:
            return self._enabled(key_id)

    @_operation
    def CreateKey(
        self,
        *,
        KeySpec: str = "SYMMETRIC_DEFAULT",
        KeyUsage: str = "ENCRYPT_DECRYPT",
        Description: str = "",
        Policy: str = "",
    ) -> Answer:
        if (KeySpec, KeyUsage) == ECC:
            arn = self.import_key(ec.generate_private_key(ec.SECP256R1()))
        elif (KeySpec, KeyUsage) == HMAC:
            arn = self.import_key(os.urandom(32))
        elif KeySpec in (ECC[0], HMAC[0]):
            raise KmsFault("ValidationException", f"KeyUsage {KeyUsage} is not compatible with {KeySpec}")
        else:
            raise KmsFault("UnsupportedOperationException", f"{KeySpec} keys are not emulated")
        return {"KeyMetadata": self._find(arn).metadata()}

    @_operation
    def CreateAlias(self, *, AliasName: str, TargetKeyId: str) -> Answer:
        if not AliasName.startswith("alias/") or AliasName.startswith("alias/aws/"):
            raise KmsFault("InvalidAliasNameException", "an alias begins with alias/, not with alias/aws/")
        if AliasName in self._aliases:
            raise KmsFault("AlreadyExistsException", f"{AliasName} exists")
        self._aliases[AliasName] = self._find(TargetKeyId, aliases=False).key_id
        return {}

    @_operation
    def UpdateAlias(self, *, AliasName: str, TargetKeyId: str) -> Answer:
        if AliasName not in self._aliases:
            raise KmsFault("NotFoundException", f"{AliasName} does not exist")
        self._aliases[AliasName] = self._find(TargetKeyId, aliases=False).key_id
        return {}

    @_operation
    def DescribeKey(self, *, KeyId: str) -> Answer:
        return {"KeyMetadata": self._find(KeyId).metadata()}

    @_operation
    def GetPublicKey(self, *, KeyId: str) -> Answer:
        key = self._enabled(KeyId)
        return {
            "KeyId": key.arn,
            "PublicKey": key.public_der(),
            "KeySpec": ECC[0],
            "KeyUsage": ECC[1],
            "SigningAlgorithms": ["ECDSA_SHA_256"],
        }

    @_operation
    def Sign(
        self,
        *,
        KeyId: str,
        Message: bytes,
        SigningAlgorithm: str,
        MessageType: str = "RAW",
        DryRun: bool = False,
    ) -> Answer:
        key = self._enabled(KeyId)
        signature = key.sign(Message, MessageType, SigningAlgorithm, dry_run=DryRun)
        return {"KeyId": key.arn, "Signature": signature, "SigningAlgorithm": SigningAlgorithm}

    @_operation
    def Verify(
        self,
        *,
        KeyId: str,
        Message: bytes,
        Signature: bytes,
        SigningAlgorithm: str,
        MessageType: str = "RAW",
        DryRun: bool = False,
    ) -> Answer:
        key = self._enabled(KeyId)
        key.verify(Signature, Message, MessageType, SigningAlgorithm, dry_run=DryRun)
        return {"KeyId": key.arn, "SignatureValid": True, "SigningAlgorithm": SigningAlgorithm}

    @_operation
    def GenerateMac(self, *, KeyId: str, Message: bytes, MacAlgorithm: str, DryRun: bool = False) -> Answer:
        key = self._enabled(KeyId)
        mac = key.mac(Message, MacAlgorithm, dry_run=DryRun)
        return {"KeyId": key.arn, "Mac": mac, "MacAlgorithm": MacAlgorithm}

    @_operation
    def DisableKey(self, *, KeyId: str) -> Answer:
        self._not_pending(KeyId).state = "Disabled"
        return {}

    @_operation
    def EnableKey(self, *, KeyId: str) -> Answer:
        self._not_pending(KeyId).state = "Enabled"
        return {}

    @_operation
    def ScheduleKeyDeletion(self, *, KeyId: str, PendingWindowInDays: int = 30) -> Answer:
        if not 7 <= PendingWindowInDays <= 30:
            raise KmsFault("ValidationException", "PendingWindowInDays must be 7 to 30")
        key = self._not_pending(KeyId)
        key.state = "PendingDeletion"
        key.deletion_date = self._clock() + PendingWindowInDays * 86_400
        return {
            "KeyId": key.arn,
            "DeletionDate": key.deletion_date,
            "KeyState": key.state,
            "PendingWindowInDays": PendingWindowInDays,
        }

    def _inject_failure(self, operation: str) -> None:
        for number, (only, code) in enumerate(self._failures):
            if only in (None, operation):
                del self._failures[number]
                raise KmsFault(code, "injected")

    def _find(self, key_id: str, *, aliases: bool = True) -> Key:
        """Return the key of a key id or ARN, or of an alias or alias ARN if `aliases`."""
        name = key_id.removeprefix(self._prefix)
        if name.startswith("alias/"):
            name = self._aliases.get(name, "") if aliases else ""
        elif name != key_id:
            name = name.removeprefix("key/")
        try:
            return self._keys[name]
        except KeyError:
            raise KmsFault(
                "NotFoundException", f"{key_id} does not exist in this account and Region"
            ) from None

    def _enabled(self, key_id: str) -> Key:
        key = self._find(key_id)
        key.require_enabled()
        return key

    def _not_pending(self, key_id: str) -> Key:
        key = self._find(key_id, aliases=False)
        key.require_not_pending()
        return key
