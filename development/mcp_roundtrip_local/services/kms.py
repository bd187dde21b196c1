"""A fake KMS with P-256 signing keys and HMAC keys that is as strict as AWS.

It enforces message sizes, digest lengths, key usage, key states and dry runs, where emulators do not. Key
policies and grants are not evaluated. The operations are methods of `FakeKms` under their AWS names; `serve`
answers them over HTTP (AWS JSON 1.1) for any AWS SDK.
"""

from __future__ import annotations

import base64
import binascii
import functools
import inspect
import json
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip_local.http.messages import Reply, Request
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.services.credentials import Credentials
from mcp_roundtrip_local.services.kms_key import ECC, HMAC, Key, KmsFault, Material, checked_material

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
    """Wrap an operation: count the call, inject a failure if one is due, and check the members' types."""
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


MAX_BODY = 1_048_576
"""The largest request body in bytes."""


@dataclass(frozen=True, slots=True)
class KmsEndpoint:
    """The address of a running `FakeKms`, for an SDK client or AWS_ENDPOINT_URL_KMS."""

    endpoint_url: str


@contextmanager
def serve(kms: FakeKms, port: int = 0, credentials: Credentials | None = None) -> Iterator[KmsEndpoint]:
    """Serve `kms` on 127.0.0.1 until the block ends; port 0 selects a free port.

    With `credentials`, other requests than those signed with them get 403. Raises OSError if the port is in
    use.
    """
    respond_to = partial(respond, kms)
    guarded = credentials.guard(respond_to) if credentials else respond_to
    server = HttpServer(guarded, port=port, max_body=MAX_BODY).start()
    try:
        yield KmsEndpoint(server.url)
    finally:
        server.close()


def respond(kms: FakeKms, request: Request) -> Reply:
    """Answer one HTTP request, also with an error response."""
    try:
        if request.too_large:
            raise KmsFault("SerializationException", f"a body has at most {MAX_BODY} bytes")
        if not (request.header("authorization") or "").startswith("AWS4-HMAC-SHA256 "):
            raise KmsFault("MissingAuthenticationTokenException", "the request is not signed")
        return _reply(200, answer(kms, request.header("x-amz-target") or "", request.body))
    except KmsFault as fault:
        return _reply(400, {"__type": fault.code, "message": fault.message})


def _reply(status: int, document: dict[str, Any]) -> Reply:
    headers = (("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-RequestId", str(uuid.uuid4())))
    return Reply(status, headers, json.dumps(document).encode())


def answer(kms: FakeKms, target: str, body: bytes) -> dict[str, Any]:
    """Call the operation that X-Amz-Target names and return its result. Raises KmsFault."""
    service, _, operation = target.partition(".")
    if service != "TrentService" or operation not in OPERATIONS:
        raise KmsFault("UnknownOperationException", f"{target!r} is not emulated")
    try:
        members = json.loads(body or b"{}")
    except ValueError:
        raise KmsFault("SerializationException", "the body is not JSON") from None
    if not isinstance(members, dict):
        raise KmsFault("SerializationException", "the body is not a JSON object")
    result: dict[str, Any] = getattr(kms, operation)(
        **{name: _decoded(name, members[name]) for name in members}
    )
    return {name: _encoded(value) for name, value in result.items()}


def _decoded(name: str, value: Any) -> Any:
    if MEMBERS.get(name) is not bytes or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise KmsFault("SerializationException", f"{name} is not Base64") from None


def _encoded(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
