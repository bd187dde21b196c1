"""Attacks on the encryption around a state, and on the epoch that names its key."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcp_roundtrip.state.jwe import short_key_id
from mcp_roundtrip_testing.ports import LocalMacKey
from support.attacks_signature import ARN, LINK
from support.forgery import SECRET, Attack, Forge
from support.tokens import ENCRYPTED, EPOCH, KEY, MAC, b64, encrypted, epoch_secret, unb64

NEXT_MAC = LocalMacKey("mrk-2", b"a newer secret of the tests")
FORGED_SECRETS = {
    "zeros": bytes(32),
    "a digest of the public key": hashlib.sha256(
        KEY.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).digest(),
    "the key of another epoch": epoch_secret(EPOCH + 1),
    "the key of another MAC key": epoch_secret(EPOCH, NEXT_MAC),
    "half the key": SECRET[:16],
}


class UncallableMacKey:
    """A MAC key with our id that must not be called."""

    short_key_id = MAC.short_key_id

    def mac(self, message: bytes) -> bytes:
        raise AssertionError("asked")


UNCALLABLE = {"macs": [UncallableMacKey()]}
BOTH = {"macs": [NEXT_MAC, MAC]}


def outer(reason: str = "header", **members: Any) -> Attack:
    """Change members of the outer header (None removes one), encrypted with the right key."""
    return Attack(lambda forge: forge.with_outer(**members), reason, ENCRYPTED, verifier=UNCALLABLE)


def outer_json(header: bytes, reason: str = "header") -> Attack:
    return Attack(
        lambda forge: encrypted(header, forge.inner, SECRET), reason, ENCRYPTED, verifier=UNCALLABLE
    )


def parts(change: Callable[[list[str]], list[str]], reason: str = "malformed") -> Attack:
    """Change the five parts of the state without any key."""
    return Attack(lambda forge: ".".join(change(forge.token.split("."))), reason, ENCRYPTED)


def content(make: Callable[[Forge], str | bytes], reason: str) -> Attack:
    return Attack(lambda forge: forge.wrap(make(forge)), reason, ENCRYPTED)


def under(secret: bytes) -> Attack:
    """Encrypt again with the genuine header and a key that a forger may have or guess."""
    return Attack(lambda forge: encrypted(forge.outer, forge.inner, secret), "decryption", ENCRYPTED)


def with_iv(size: int) -> Attack:
    return Attack(
        lambda forge: encrypted(forge.outer, forge.inner, SECRET, bytes(size)), "malformed", ENCRYPTED
    )


def epoch(name: object, reason: str, later_s: int = 0) -> Attack:
    """Encrypt with the key that the fleet derives for this epoch."""
    return Attack(lambda forge: forge.at_epoch(name), reason, ENCRYPTED, later_s=later_s, verifier=UNCALLABLE)


def moved_border(by: int) -> Callable[[list[str]], list[str]]:
    """Split ciphertext and tag at another position."""

    def change(token: list[str]) -> list[str]:
        sealed = unb64(token[3]) + unb64(token[4])
        return [*token[:3], b64(sealed[: by - 16]), b64(sealed[by - 16 :])]

    return change


def as_json(forge: Forge) -> str:
    """Return the token in the JSON serialization (RFC 7516 §7.2.2)."""
    protected, _, iv, ciphertext, tag = forge.token.split(".")
    return json.dumps({"protected": protected, "iv": iv, "ciphertext": ciphertext, "tag": tag})


OUTER_MEMBERS: dict[str, Any] = {
    "zip": "DEF",
    "crit": ["kid"],
    "epk": {"kty": "EC"},
    "jku": "https://evil.example/jwks",
}
HEADERS = {
    **{f"outer alg {alg!r}": outer(alg=alg) for alg in ("none", "DIR", "A256KW", "ES256", 5, None)},
    "outer alg PBES2": outer(alg="PBES2-HS256+A128KW", p2c=2**31 - 1, p2s="AAAA"),
    **{f"outer enc {enc!r}": outer(enc=enc) for enc in ("A128GCM", "a256gcm", "none", 5, None)},
    **{f"outer typ {typ!r}": outer(typ=typ) for typ in ("JWT", "mcp-link+jwt", "MCP-RS+JWT", 5, None)},
    **{f"outer cty {cty!r}": outer(cty=cty) for cty in ("jwt", "JWE", 5, None)},
    **{f"outer header member {name}": outer(**{name: value}) for name, value in OUTER_MEMBERS.items()},
    **{
        f"outer kid {kid!r}": outer(kid=kid)
        for kid in (5, None, [f"{MAC.short_key_id}.{EPOCH}"], "", ARN, ".")
    },
    "a duplicate outer member": outer_json(
        f'{{"alg":"dir","cty":"JWT","enc":"A256GCM","kid":"x","kid":"{MAC.short_key_id}.{EPOCH}",'
        '"typ":"mcp-rs+jwt"}'.encode()
    ),
    "an outer header that is an array": outer_json(b"[]"),
    "an outer header of 100 levels": outer_json(b"[" * 100 + b"]" * 100),
    "an outer header of 1,000 levels": outer_json(b"[" * 1000 + b"]" * 1000, "malformed"),
    "an outer header without content": outer_json(b""),
}
PARTS = {
    "a key part that is not empty": parts(lambda token: [token[0], b64(SECRET), *token[2:]]),
    "three parts": parts(lambda token: [token[0], *token[3:]]),
    "four parts": parts(lambda token: [token[0], *token[2:]]),
    "six parts": parts(lambda token: [*token, "AAAA"]),
    "IV of 16 bytes, encrypted with it": with_iv(16),
    "no IV": parts(lambda token: [*token[:2], "", *token[3:]]),
    "another IV": parts(lambda token: [*token[:2], b64(bytes(12)), *token[3:]], "decryption"),
    "tag truncated to 12 bytes": parts(lambda token: [*token[:4], token[4][:16]]),
    "tag of 17 bytes": parts(lambda token: [*token[:4], b64(unb64(token[4]) + b"\0")]),
    "no tag": parts(lambda token: [*token[:4], ""]),
    "a tag of zeros": parts(lambda token: [*token[:4], b64(bytes(16))], "decryption"),
    "a byte of the ciphertext in the tag": parts(moved_border(-1)),
    "a byte of the tag in the ciphertext": parts(moved_border(1)),
    "no ciphertext": parts(lambda token: [*token[:3], "", token[4]], "decryption"),
    "in the JSON serialization": Attack(as_json, "malformed", ENCRYPTED),
    **{f"encrypted under {name}": under(secret) for name, secret in FORGED_SECRETS.items()},
}
CONTENTS = {
    "nothing encrypted": content(lambda forge: b"", "malformed"),
    "claims encrypted but not signed": content(lambda forge: json.dumps(forge.claims), "malformed"),
    "encrypted twice": content(lambda forge: forge.token, "malformed"),
    "a link, encrypted": content(lambda forge: LINK, "header"),
    "bytes outside ASCII, encrypted": content(lambda forge: bytes(range(256)), "malformed"),
}
EPOCHS = {
    "this epoch": Attack(lambda forge: forge.at_epoch(EPOCH), None, ENCRYPTED),
    "the previous epoch, within the lifetime of a round": Attack(
        lambda forge: forge.at_epoch(EPOCH - 1), None, ENCRYPTED, later_s=599
    ),
    "the previous epoch, after the lifetime of a round": epoch(EPOCH - 1, "epoch", later_s=600),
    "the next epoch": epoch(EPOCH + 1, "epoch"),
    "the last epoch": epoch(9_999_999_999, "epoch"),
    **{
        f"epoch {name!r:.24}": epoch(name, "header")
        for name in (
            *(0, -EPOCH, 10**10, f"0{EPOCH}", f"+{EPOCH}", f" {EPOCH}", f"{EPOCH}\n"),
            *("", "5e5", f"{EPOCH}.{EPOCH}", "../etc", "５０００００", "\ud800"),
        )
    },
    **{
        f"generation {generation!r}": outer(reason, kid=f"{generation}.{EPOCH}")
        for generation, reason in {
            short_key_id("mrk-of-the-attacker"): "unknown_key",
            MAC.short_key_id[:-1]: "header",
            f"{MAC.short_key_id}A": "header",
            "аааааааа": "header",
        }.items()
    },
    "a MAC key that is trusted besides the current one": Attack(
        lambda forge: forge.token, None, ENCRYPTED, verifier=BOTH
    ),
    "the newer of two MAC keys over the content of the older one": Attack(
        lambda forge: forge.with_outer(kid=f"{NEXT_MAC.short_key_id}.{EPOCH}"),
        "decryption",
        ENCRYPTED,
        verifier=BOTH,
    ),
    "a MAC key that is no longer trusted": Attack(
        lambda forge: forge.token, "unknown_key", ENCRYPTED, verifier={"macs": [NEXT_MAC]}
    ),
}
ENCRYPTIONS = HEADERS | PARTS | CONTENTS | EPOCHS
