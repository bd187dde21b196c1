"""A fake KMS with P-256 signing keys and HMAC keys.

Message sizes, digest lengths, key usage and states are as strict as in AWS. Policies do not count.
"""

import base64
import json
import secrets
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcp_roundtrip.state.jws import P256_ORDER
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, respond_json
from mcp_roundtrip_tools.template.model import ACCOUNT, REGION, TemplateKey

MAX_MESSAGE: Final = 4096
"""The largest message of Sign, Verify and GenerateMac, in bytes."""

ECC: Final = "ECC_NIST_P256"
"""The KeySpec of signing keys. Others are HMAC keys."""

_BINARY: Final = frozenset({"Message", "Signature"})

Material = ec.EllipticCurvePrivateKey | bytes
Answer = dict[str, Any]


@dataclass(slots=True)
class Key:
    """A key: a P-256 private key, or the secret of an HMAC key."""

    key_id: str
    arn: str
    material: Material
    state: str = "Enabled"

    @property
    def private(self) -> ec.EllipticCurvePrivateKey:
        """The private key of a signing key. Raises ServiceFault for an HMAC key."""
        if isinstance(self.material, bytes):
            raise ServiceFault("InvalidKeyUsageException", f"{self.arn} does not sign")
        return self.material

    @property
    def secret(self) -> bytes:
        """The secret of an HMAC key. Raises ServiceFault for a signing key."""
        if not isinstance(self.material, bytes):
            raise ServiceFault("InvalidKeyUsageException", f"{self.arn} has no secret")
        return self.material

    def public_der(self) -> bytes:
        if isinstance(self.material, bytes):
            raise ServiceFault("UnsupportedOperationException", f"{self.arn} has no public key")
        return self.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class FakeKms:
    """The keys and aliases of an account and Region. Thread-safe.

    The operations, and no other methods, have upper-case names, those of AWS. Their arguments are the members
    of the request; they raise ServiceFault. `calls` counts the calls of each operation, also failed ones.
    """

    def __init__(self, *, region: str = REGION) -> None:
        self.calls: Counter[str] = Counter()
        self._prefix = f"arn:aws:kms:{region}:{ACCOUNT}:"
        self._keys: dict[str, Key] = {}
        self._aliases: dict[str, str] = {}
        self._lock = threading.RLock()

    def import_key(self, material: Material, *, key_id: str | None = None) -> str:
        """Add a key with this material and return its ARN. `key_id` defaults to a new UUID."""
        key_id = key_id or str(uuid.uuid4())
        with self._lock:
            self._keys[key_id] = Key(key_id, f"{self._prefix}key/{key_id}", material)
            return self._keys[key_id].arn

    def key_ids(self) -> list[str]:
        """Return the ids of all keys."""
        return [*self._keys]

    def key(self, key_id: str) -> Key:
        """Return a key that is enabled, by its id, ARN or alias. Raises ServiceFault."""
        key = self.find(key_id)
        if key.state == "Disabled":
            raise ServiceFault("DisabledException", f"{key.arn} is disabled")
        if key.state != "Enabled":
            raise ServiceFault("KMSInvalidStateException", f"{key.arn} is {key.state}")
        return key

    def call(self, operation: str, members: Answer) -> Answer:
        """Carry out a request: count it, and call the operation."""
        with self._lock:
            self.calls[operation] += 1
            try:
                answer: Answer = getattr(self, operation)(**members)
            except TypeError as error:
                raise ServiceFault("ValidationException", str(error)) from None
            return answer

    def CreateAlias(self, *, AliasName: str, TargetKeyId: str) -> Answer:
        self._aliases[AliasName] = self.find(TargetKeyId).key_id
        return {}

    def GetPublicKey(self, *, KeyId: str) -> Answer:
        key = self.key(KeyId)
        described = {"KeySpec": ECC, "KeyUsage": "SIGN_VERIFY", "SigningAlgorithms": ["ECDSA_SHA_256"]}
        return {"KeyId": key.arn, "PublicKey": key.public_der(), **described}

    def Sign(self, *, KeyId: str, Message: bytes, SigningAlgorithm: str, MessageType: str = "RAW") -> Answer:
        key = self.key(KeyId)
        _check_algorithm(SigningAlgorithm, "ECDSA_SHA_256")
        signature = key.private.sign(Message, _ecdsa(Message, MessageType))
        return {"KeyId": key.arn, "Signature": signature, "SigningAlgorithm": SigningAlgorithm}

    def Verify(
        self,
        *,
        KeyId: str,
        Message: bytes,
        Signature: bytes,
        SigningAlgorithm: str,
        MessageType: str = "RAW",
    ) -> Answer:
        key = self.key(KeyId)
        _check_algorithm(SigningAlgorithm, "ECDSA_SHA_256")
        try:
            key.private.public_key().verify(Signature, Message, _ecdsa(Message, MessageType))
        except InvalidSignature:
            raise ServiceFault("KMSInvalidSignatureException", "the signature is not valid") from None
        return {"KeyId": key.arn, "SignatureValid": True, "SigningAlgorithm": SigningAlgorithm}

    def GenerateMac(self, *, KeyId: str, Message: bytes, MacAlgorithm: str) -> Answer:
        key = self.key(KeyId)
        _check_algorithm(MacAlgorithm, "HMAC_SHA_256")
        _check_size(Message)
        mac = hmac.HMAC(key.secret, hashes.SHA256())
        mac.update(Message)
        return {"KeyId": key.arn, "Mac": mac.finalize(), "MacAlgorithm": MacAlgorithm}

    def find(self, key_id: str) -> Key:
        """Return the key of a key id, an ARN, an alias or the ARN of an alias. Raises ServiceFault."""
        name = key_id.removeprefix(self._prefix)
        key = self._keys.get(self._aliases.get(name, name.removeprefix("key/")))
        if key is None:
            raise ServiceFault("NotFoundException", f"{key_id} does not exist in this account and Region")
        return key


def respond(kms: FakeKms, request: Request) -> Response:
    """Answer one HTTP request in the AWS JSON 1.1 protocol, also with an error response."""
    target = request.header("x-amz-target") or ""
    response = respond_json(lambda: call_operation(kms, target, request.body))
    return replace(response, headers=(*response.headers, ("x-amzn-RequestId", str(uuid.uuid4()))))


def call_operation(kms: FakeKms, target: str, body: bytes) -> Answer:
    """Call the operation that X-Amz-Target names, and return its result. Raises ServiceFault."""
    service, _, operation = target.partition(".")
    is_operation = operation[:1].isupper() and hasattr(kms, operation)
    if service != "TrentService" or not is_operation:
        raise ServiceFault("UnknownOperationException", f"{target!r} is not emulated")
    try:
        given = json.loads(body or b"{}")
        members = {
            name: base64.b64decode(given[name], validate=True) if name in _BINARY else given[name]
            for name in given
        }
    except (ValueError, TypeError):
        raise ServiceFault("SerializationException", "the body is no JSON object of this operation") from None
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in kms.call(operation, members).items()
    }


def _ecdsa(message: bytes, message_type: str) -> ec.ECDSA:
    _check_size(message)
    if message_type == "RAW":
        return ec.ECDSA(hashes.SHA256())
    if message_type != "DIGEST" or len(message) != 32:
        raise ServiceFault(
            "ValidationException", "MessageType must be RAW, or DIGEST with a digest of 32 bytes"
        )
    return ec.ECDSA(utils.Prehashed(hashes.SHA256()))


def _check_algorithm(given: str, known: str) -> None:
    if given != known:
        raise ServiceFault("InvalidKeyUsageException", f"{given} is not emulated: {known} is")


def _check_size(message: bytes) -> None:
    if not 1 <= len(message) <= MAX_MESSAGE:
        raise ServiceFault("ValidationException", f"Message must have 1 to {MAX_MESSAGE} bytes")


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of the template in a run. `name` is a part of their ids; they are derived of `secret`."""

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
        if key.spec != ECC:
            return digest
        number = int.from_bytes(digest, "big") % (P256_ORDER - 1) + 1  # a private key (SEC 2, 2.4.2)
        return ec.derive_private_key(number, ec.SECP256R1())


DEVELOPMENT_KEYS: Final = KeySet("development", b"mcp-roundtrip development key ")
"""The same on every computer, so that a state is valid in the next run of a command.

Anyone can compute them: a server that others can reach needs keys of its own.
"""
