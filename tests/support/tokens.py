"""Codecs with fixed keys and clock, and functions that assemble arbitrary tokens."""

import itertools
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.jwe import EPOCH_S, EpochKeys, MacKey
from mcp_roundtrip.state.jws import Backoff, LocalKey, PublicKeys, Signer, VerificationKey, raw_signature
from mcp_roundtrip.state.signing_key_certificates import Delegation, TrustedKeys
from mcp_roundtrip.state.url_elicitation_links import Links
from mcp_roundtrip_testing.ports import LocalMacKey

NOW = 1_800_000_000  # the first second of an epoch
EPOCH = NOW // EPOCH_S
PRIVATE = ec.derive_private_key(0x5EED, ec.SECP256R1())
KEY = LocalKey(PRIVATE)
MAC = LocalMacKey("mrk-1", b"a secret of the tests")
ALICE = Principal("jwt", "alice", "https://id.example", "c1").canonical()
BINDING = Binding(
    issuer="stack",
    audience="https://mcp.example/mcp",
    principal=ALICE,
    method="tools/call",
    name="provision",
    arguments={"name": "db", "vcpus": 2},
)
DELEGATION = Delegation(
    root=KEY,
    issuer=BINDING.issuer,
    audience=BINDING.audience,
    limits=Limits(),
    clock=lambda: NOW - 600,
    random_bytes=Random(0x5EED).randbytes,
    random=lambda: 0.5,
    renewals=Backoff(lambda: NOW - 600),
    on_issued=lambda jti, expires_at: None,
)
"""A signer with one certified key, from ten minutes ago until `CERTIFIED_UNTIL`."""

CERTIFIED_UNTIL = NOW + 1200


@dataclass(frozen=True, slots=True)
class Several:
    keys: tuple[LocalKey, ...]

    def find(self, kid: str) -> VerificationKey | None:
        return next((found for key in self.keys if (found := key.find(kid))), None)


def links(now: float = NOW, **changes: Any) -> Links:
    """Return the links of BINDING's deployment with the clock at `now`."""
    given = {"signer": KEY, "keys": KEY, "issuer": BINDING.issuer, "audience": BINDING.audience}
    return Links(**{**given, **changes}, clock=lambda: now, random_bytes=secrets.token_bytes)


def epoch_keys(now: float, macs: Sequence[MacKey]) -> EpochKeys:
    def clock() -> float:
        return now

    renewals = Backoff(clock)
    return EpochKeys(
        macs, STATE_TYP, Limits(), issuer=BINDING.issuer, clock=clock, random=lambda: 0.5, renewals=renewals
    )


@dataclass(frozen=True, slots=True)
class Configuration:
    """A way to protect states: signing and encryption."""

    delegated: bool
    encrypted: bool

    def __str__(self) -> str:
        return f"{'delegated' if self.delegated else 'direct'}, {'encrypted' if self.encrypted else 'signed'}"

    def codec(
        self,
        now: float = NOW,
        *,
        keys: PublicKeys = KEY,
        macs: Sequence[MacKey] = (MAC,),
        revoked: Collection[str] = (),
    ) -> RequestStateCodec:
        """Return a new codec with its clock at `now`."""
        epochs = epoch_keys(now, macs) if self.encrypted else None
        signer = DELEGATION.signer if self.delegated else lambda: KEY
        return codec(now, keys=keys, revoked=revoked, epochs=epochs, signer=signer)


CONFIGURATIONS = tuple(Configuration(*cell) for cell in itertools.product((False, True), repeat=2))
DELEGATED = tuple(cell for cell in CONFIGURATIONS if cell.delegated)
DIRECT = tuple(cell for cell in CONFIGURATIONS if not cell.delegated)
ENCRYPTED = tuple(cell for cell in CONFIGURATIONS if cell.encrypted)
SIGNED = tuple(cell for cell in CONFIGURATIONS if not cell.encrypted)


def codec(
    now: float = NOW,
    *,
    keys: PublicKeys = KEY,
    revoked: Collection[str] = (),
    epochs: EpochKeys | None = None,
    limits: Limits | None = None,
    signer: Callable[[], Signer] = lambda: KEY,
) -> RequestStateCodec:
    """Return a codec with its clock at `now`. It encrypts states only with `epochs`."""
    trusted = TrustedKeys(keys, revoked)
    return RequestStateCodec(signer, trusted, epochs, limits or Limits(), lambda: now, secrets.token_bytes)


def sealed(payload: Any = None, *, now: float = NOW, binding: Binding = BINDING) -> str:
    return codec(now).seal(binding, payload, round=1, first_issued_at=None)


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def encoded(part: Any) -> str:
    """Return a part of a token: bytes, or an object as JSON."""
    return b64(part if isinstance(part, bytes) else json.dumps(part).encode())


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def header_of(token: str) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(unb64(token.split(".", maxsplit=1)[0]))
    return header


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(unb64(token.split(".")[1]))
    return claims


def signed(header: Any, claims: Any, signer: Signer = KEY) -> str:
    """Return a validly signed token with any header and claims, given as objects or bytes."""
    signing_input = ".".join(map(encoded, (header, claims)))
    return f"{signing_input}.{b64(signer.sign(signing_input.encode()))}"


def encrypted(header: Any, content: str | bytes, secret: bytes, iv: bytes | None = None) -> str:
    """Return a validly encrypted token with any content and header, given as object or bytes."""
    protected, iv = encoded(header), iv or secrets.token_bytes(12)
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    sealed = AESGCM(secret).encrypt(iv, content, protected.encode())
    return ".".join((protected, "", b64(iv), b64(sealed[:-16]), b64(sealed[-16:])))


def decrypted(token: str, secret: bytes) -> str:
    protected, _, iv, ciphertext, tag = token.split(".")
    return AESGCM(secret).decrypt(unb64(iv), unb64(ciphertext) + unb64(tag), protected.encode()).decode()


def epoch_secret(epoch: object, mac: MacKey = MAC) -> bytes:
    """Return the key that the fleet derives for an epoch of this name."""
    return mac.mac(f"mcp-rs/v2/epoch:{epoch}:{BINDING.issuer}".encode("utf-8", "surrogatepass"))


def with_header(token: str, signer: Signer = KEY, **members: Any) -> str:
    """Return the token with changed header members (None removes one), signed again."""
    return signed(changed(header_of(token), members), claims_of(token), signer)


def with_claims(token: str, signer: Signer = KEY, **members: Any) -> str:
    return signed(header_of(token), claims_of(token) | members, signer)


def without_claim(token: str, name: str, signer: Signer = KEY) -> str:
    claims = {other: value for other, value in claims_of(token).items() if other != name}
    return signed(header_of(token), claims, signer)


def with_signature(token: str, signature: bytes) -> str:
    return f"{token.rpartition('.')[0]}.{b64(signature)}"


class FailingKeys:
    """Keys whose lookup raises `error`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def find(self, kid: str) -> VerificationKey | None:
        raise self.error


def lower_s(token: str) -> str:
    """Return the token with the lower of the two valid values of s. Libraries mint either."""
    raw = unb64(token.rpartition(".")[2])
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    return with_signature(token, raw_signature(utils.encode_dss_signature(r, s)))


def changed(header: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """Return the header with changed members. None removes one."""
    return {name: value for name, value in (header | members).items() if value is not None}
