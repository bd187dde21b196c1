"""Tokens for tests: a codec with fixed key and clock, and tokens put together in any shape."""

import itertools
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip.state.keys import LocalKey, PublicKeys, Signer, raw_signature

NOW = 1_800_000_000
PRIVATE = ec.derive_private_key(0x5EED, ec.SECP256R1())
KEY = LocalKey(PRIVATE)
ALICE = '{"client":"c1","issuer":"https://id.example","kind":"jwt","subject":"alice"}'
BINDING = Binding(
    issuer="stack",
    audience="https://mcp.example/mcp",
    principal=ALICE,
    method="tools/call",
    name="provision",
    arguments={"name": "db", "vcpus": 2},
)

_ids = itertools.count()


def token_id() -> str:
    return f"id-{next(_ids)}"


def codec(
    now: float = NOW, *, signer: Signer = KEY, keys: PublicKeys = KEY, limits: Limits | None = None
) -> RequestStateCodec:
    return RequestStateCodec(signer, keys, limits or Limits(), lambda: now, token_id)


def sealed(payload: Any = None, *, now: float = NOW, binding: Binding = BINDING) -> str:
    return codec(now).seal(binding, payload, round=1, first_issued_at=None)


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def header_of(token: str) -> dict[str, Any]:
    return json.loads(unb64(token.split(".", maxsplit=1)[0]))


def claims_of(token: str) -> dict[str, Any]:
    return json.loads(unb64(token.split(".")[1]))


def signed(header: Any, claims: Any, private: ec.EllipticCurvePrivateKey = PRIVATE) -> str:
    """A token with a right signature over any header and claims; bytes are taken as they are."""
    parts = (part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims))
    signing_input = ".".join(b64(part) for part in parts)
    signature = raw_signature(private.sign(signing_input.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signing_input}.{b64(signature)}"


def with_header(token: str, **members: Any) -> str:
    """The token with header members changed, or removed where None, and signed again."""
    header = {name: value for name, value in (header_of(token) | members).items() if value is not None}
    return signed(header, claims_of(token))


def with_claims(token: str, **members: Any) -> str:
    return signed(header_of(token), claims_of(token) | members)


def without_claim(token: str, name: str) -> str:
    return signed(header_of(token), {k: v for k, v in claims_of(token).items() if k != name})


def with_signature(token: str, signature: bytes) -> str:
    return f"{token.rpartition('.')[0]}.{b64(signature)}"
