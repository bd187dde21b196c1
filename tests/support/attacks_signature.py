"""Attacks on the signed token: its header, its key id, its signature, and JSON that is never minted."""

import hmac
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcp_roundtrip.state.jws import P256_ORDER, LocalKey
from support import tokens
from support.forgery import FORGES, Attack, Forge

MALLORY = LocalKey(ec.derive_private_key(0xBAD, ec.SECP256R1()))
OTHER = LocalKey(ec.derive_private_key(0x0DD, ec.SECP256R1()))
BOTH = {"keys": tokens.Several((tokens.KEY, OTHER))}
LINK = tokens.links().sign(tokens.ALICE, "size", "f1", tokens.NOW + 600)
ARN = "arn:aws:kms:us-east-1:666666666666:key/0f0e0d0c-0b0a-0908-0706-050403020100"
FURTHER_MEMBERS: dict[str, Any] = {
    "jwk": {"kty": "EC"},
    "jku": "https://evil.example/jwks",
    "crit": ["exp"],
    "b64": False,
    "zip": "DEF",
}


def header(reason: str = "header", **members: Any) -> Attack:
    return Attack(lambda forge: forge.with_header(**members), reason)


def named(kid: object, reason: str = "unknown_key") -> Attack:
    """Name the signing key otherwise, also in place of a certificate."""
    return Attack(lambda forge: forge.with_header(crt=None, kid=kid), reason)


def signed_with(key: LocalKey, reason: str | None, **more: Any) -> Attack:
    """Sign with another key, and name it."""
    header = {"alg": "ES256", "kid": key.kid, "typ": "mcp-rs+jwt"}
    return Attack(lambda forge: forge.signed(header, forge.claims, key), reason, **more)


def signature(change: Callable[[Forge], bytes], reason: str = "signature") -> Attack:
    return Attack(lambda forge: forge.with_signature(change(forge)), reason)


def r_and_s(forge: Forge) -> tuple[int, int]:
    raw = forge.signature
    return int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")


def with_high_s(forge: Forge) -> bytes:
    """Return the other of the two valid signatures of one message."""
    r, s = r_and_s(forge)
    return r.to_bytes(32, "big") + (P256_ORDER - s).to_bytes(32, "big")


def json_of(reason: str, change: Callable[[bytes], bytes]) -> Attack:
    """Rewrite the claims as text, validly signed."""
    return Attack(lambda forge: forge.signed(forge.header, change(json.dumps(forge.claims).encode())), reason)


def header_json(header: bytes, reason: str = "header") -> Attack:
    return Attack(lambda forge: forge.signed(header, forge.claims), reason)


def keyed_with_the_public_key(alg: str) -> Callable[[Forge], object]:
    """Replace the signature by a MAC, with the right or a wrong algorithm name."""

    def forged(forge: Forge) -> object:
        signing_input = ".".join(map(tokens.encoded, (forge.header | {"alg": alg}, forge.claims)))
        secret = forge.key.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        mac = hmac.digest(secret, signing_input.encode(), "sha256")
        return forge.wrap(f"{signing_input}.{tokens.b64(mac.ljust(64, bytes(1)))}")

    return forged


HEADERS = {
    **{
        f"alg {alg!r}": header(alg=alg)
        for alg in (
            *("none", "", "es256", "ES256 ", "ES384", "RS256", "HS256", "dir"),
            *(5, True, ["ES256"], {"alg": "ES256"}),
        )
    },
    "without alg": header(alg=None),
    "alg none, unsigned": Attack(
        lambda forge: forge.wrap(tokens.b64(b'{"alg":"none"}') + f".{forge.inner.split('.')[1]}."),
        "malformed",
    ),
    "HS256 keyed with the PEM": Attack(keyed_with_the_public_key("HS256"), "header"),
    "HS256 keyed with the PEM, said to be ES256": Attack(keyed_with_the_public_key("ES256"), "signature"),
    **{
        f"typ {typ!r}": header(typ=typ)
        for typ in ("JWT", "at+jwt", "mcp-link+jwt", "mcp-rs-crt+jwt", "MCP-RS+JWT", "", 5)
    },
    "without typ": header(typ=None),
    **{f"header member {name}": header(**{name: value}) for name, value in FURTHER_MEMBERS.items()},
    "a duplicate header member": Attack(
        lambda forge: forge.signed(b'{"alg":"none",' + json.dumps(forge.header).encode()[1:], forge.claims),
        "header",
    ),
    "a header with NaN": header_json(b'{"alg":NaN}'),
    "a header that is an array": header_json(b"[]"),
    "a header of 1,000 levels": header_json(b"[" * 1000 + b"]" * 1000),
    "a header of 30,000 levels": header_json(b"[" * 30_000, "malformed"),
}
KEYS = {
    **{f"kid {kid!r}": named(kid) for kid in (ARN, "../../etc/passwd", "", "\ud800")},
    **{f"kid {kid!r}": named(kid, "header") for kid in (5, ["a", "list"], {"kid": tokens.KEY.kid})},
    "without kid and certificate": named(None, "header"),
    "kid and certificate": Attack(
        lambda forge: forge.with_header(kid=tokens.KEY.kid, crt=FORGES[tokens.DELEGATED[0]].certificate),
        "header",
    ),
    "the certified key under the root's kid": Attack(
        lambda forge: forge.with_header(crt=None, kid=tokens.KEY.kid), "signature", tokens.DELEGATED
    ),
    "the attacker's own key": signed_with(MALLORY, "unknown_key"),
    "the attacker's own key under our kid": Attack(
        lambda forge: forge.signed(forge.header, forge.claims, MALLORY), "signature"
    ),
    "the kid of another trusted key": Attack(
        lambda forge: forge.with_header(kid=OTHER.kid), "signature", tokens.DIRECT, verifier=BOTH
    ),
    "another trusted key under our kid": Attack(
        lambda forge: forge.signed(forge.header, forge.claims, OTHER),
        "signature",
        tokens.DIRECT,
        verifier=BOTH,
    ),
    "one of two trusted keys": Attack(lambda forge: forge.token, None, verifier=BOTH),
    "the other of two trusted keys": signed_with(OTHER, None, verifier=BOTH),
    "a key that is no longer trusted": Attack(
        lambda forge: forge.token,
        "unknown_key",
        instead=dict.fromkeys(tokens.DELEGATED, "certificate_unknown_key"),
        verifier={"keys": OTHER},
    ),
}
SIGNATURES = {
    "signature (0, 0)": signature(lambda forge: bytes(64)),
    "signature with the high s": signature(with_high_s),
    "signature in DER": signature(lambda forge: utils.encode_dss_signature(*r_and_s(forge)), "malformed"),
    "signature of 63 bytes": signature(lambda forge: forge.signature[:63], "malformed"),
    "signature of 65 bytes": signature(lambda forge: forge.signature + b"\0", "malformed"),
    "no signature": signature(lambda forge: b"", "malformed"),
    "signature of another token": signature(
        lambda forge: tokens.unb64(tokens.with_header(forge.inner, forge.key, typ="JWT").rpartition(".")[2])
    ),
}
CONTENTS = {
    "a duplicate claim": json_of("payload", lambda claims: claims[:-1] + b',"exp":9999999999}'),
    "NaN": json_of("payload", lambda claims: claims.replace(str(tokens.NOW).encode(), b"NaN", 1)),
    "claims of 3,000 levels": json_of("payload", lambda _: b'{"st":' + b"[" * 3000 + b"]" * 3000 + b"}"),
    "claims that are not UTF-8": json_of("payload", lambda _: b'{"st":"\xff"}'),
    "claims after a byte order mark": json_of("payload", lambda claims: b"\xef\xbb\xbf" + claims),
    "claims with trailing text": json_of("payload", lambda claims: claims + b"{}"),
    "claims that are an array": json_of("payload", lambda _: b"[]"),
    "no claims": json_of("payload", lambda _: b""),
    "a link": Attack(lambda forge: forge.wrap(LINK), "header"),
    "a link's claims": Attack(lambda forge: forge.signed(forge.header, tokens.claims_of(LINK)), "claims"),
    "a state in a link's type": Attack(
        lambda forge: forge.wrap(
            tokens.signed({"alg": "ES256", "kid": tokens.KEY.kid, "typ": "mcp-link+jwt"}, forge.claims)
        ),
        "header",
    ),
}
SIGNED_TOKENS = HEADERS | KEYS | SIGNATURES | CONTENTS
