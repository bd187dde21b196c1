"""Attacks on the certificate in the header of a state that a key in memory has signed."""

import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from mcp_roundtrip.state.jws import P256_ORDER, LocalKey
from support import tokens
from support.attacks_signature import ARN, BOTH, FURTHER_MEMBERS, LINK, MALLORY, OTHER
from support.forgery import FORGES, Attack, Forge

CERTIFICATE = FORGES[tokens.DELEGATED[0]].certificate
CERTIFIED = tokens.claims_of(CERTIFICATE)
JWK = CERTIFIED["cnf"]["jwk"]
HEAD, PAYLOAD, END = CERTIFICATE.split(".")
OF_OTHER = tokens.encoded(tokens.header_of(CERTIFICATE) | {"kid": OTHER.kid})
SIGNATURE = tokens.unb64(END)
R, S = SIGNATURE[:32], int.from_bytes(SIGNATURE[32:], "big")
OUTSIDE = ec.derive_private_key(0x5EED, ec.SECP256K1()).public_key().public_numbers()


def with_certificate(certificate: object, reason: str | None, **more: Any) -> Attack:
    """Return the state with another certificate, signed again by the certified key."""
    return Attack(lambda forge: forge.with_header(crt=certificate), reason, tokens.DELEGATED, **more)


def malformed(certificate: str) -> Attack:
    return with_certificate(certificate, "certificate_malformed")


def with_signature_of(signature: bytes) -> Attack:
    return with_certificate(tokens.with_signature(CERTIFICATE, signature), "certificate_signature")


def claims(reason: str | None, **members: Any) -> Attack:
    """Change claims of the certificate, and sign it again with the root key."""
    return with_certificate(tokens.with_claims(CERTIFICATE, **members), reason)


def header(reason: str = "certificate_header", **members: Any) -> Attack:
    return with_certificate(tokens.with_header(CERTIFICATE, **members), reason)


def key(reason: str = "certificate_key", **members: Any) -> Attack:
    """Change members of the JWK. None removes one."""
    jwk = {name: value for name, value in (JWK | members).items() if value is not None}
    return claims(reason, cnf={"jwk": jwk})


def certificate(claims: object, signer: LocalKey = tokens.KEY, **members: Any) -> str:
    """Return a certificate with any claims, and with these changes of the header."""
    return tokens.signed(tokens.header_of(CERTIFICATE) | members, claims, signer)


def content(text: bytes, reason: str = "certificate_payload") -> Attack:
    return with_certificate(certificate(text), reason)


def certificate_for(signer: LocalKey) -> dict[str, object]:
    """Return the genuine claims with another key."""
    numbers = signer.public_key.public_numbers()
    return CERTIFIED | {"cnf": {"jwk": JWK | {"x": coordinate(numbers.x), "y": coordinate(numbers.y)}}}


def coordinate(number: int, size: int = 32) -> str:
    return tokens.b64(number.to_bytes(size, "big"))


def by_attacker(change: Callable[[dict[str, object]], str], reason: str | None) -> Attack:
    """Return a state signed by the attacker's key, with the certificate that `change` makes."""
    certificate = change(certificate_for(MALLORY))
    head = {"alg": "ES256", "crt": certificate, "typ": "mcp-rs+jwt"}
    return Attack(lambda forge: forge.signed(head, forge.claims, MALLORY), reason, tokens.CONFIGURATIONS)


def chained(claims: dict[str, object]) -> str:
    return tokens.signed(
        {"alg": "ES256", "crt": CERTIFICATE, "typ": "mcp-rs-crt+jwt"}, claims, FORGES[tokens.DELEGATED[0]].key
    )


def with_early_end(seconds: int) -> Callable[[Forge], object]:
    """Return a state of ten minutes with a certificate that ends earlier."""
    certificate = tokens.with_claims(CERTIFICATE, exp=tokens.NOW + 600 - seconds)
    return lambda forge: forge.with_header(crt=certificate)


CHAINS = {
    "a certificate by the attacker": by_attacker(
        lambda claims: certificate(claims, MALLORY, kid=MALLORY.kid), "certificate_unknown_key"
    ),
    "a certificate by the attacker under the root's kid": by_attacker(
        lambda claims: certificate(claims, MALLORY), "certificate_signature"
    ),
    "a certificate by a certified key": by_attacker(chained, "certificate_header"),
    "a certificate by a certified key under the root's kid": by_attacker(
        lambda claims: certificate(claims, FORGES[tokens.DELEGATED[0]].key), "certificate_signature"
    ),
    "a key put into the genuine certificate": by_attacker(
        lambda claims: f"{HEAD}.{tokens.encoded(claims)}.{END}", "certificate_signature"
    ),
    "the genuine certificate for the attacker's key": by_attacker(lambda claims: CERTIFICATE, "signature"),
    "a certificate of another key": with_certificate(certificate(certificate_for(OTHER)), "signature"),
    "a certificate by the other of two trusted keys": with_certificate(
        certificate(CERTIFIED, OTHER, kid=OTHER.kid), None, verifier=BOTH
    ),
    "a certificate under the kid of another trusted key": with_certificate(
        f"{OF_OTHER}.{PAYLOAD}.{END}", "certificate_signature", verifier=BOTH
    ),
    "two certificates": with_certificate([CERTIFICATE, CERTIFICATE], "certificate_not_a_string"),
    "a certificate as state": Attack(lambda forge: forge.wrap(CERTIFICATE), "header"),
    "a certificate's claims as state": Attack(lambda forge: forge.signed(forge.header, CERTIFIED), "claims"),
    "a state as certificate": with_certificate(FORGES[tokens.DIRECT[0]].token, "certificate_header"),
    "a link's claims in a certificate": content(
        json.dumps(tokens.claims_of(LINK)).encode(), "certificate_claims"
    ),
}
SPELLINGS = {
    "certificate empty": malformed(""),
    "certificate too long": with_certificate("A" * 2049, "certificate_too_long"),
    "certificate too long for a header": with_certificate("A" * 4096, "malformed"),
    "certificate not in ASCII": malformed("é" + CERTIFICATE),
    **{
        f"certificate with {suffix!r} appended": malformed(CERTIFICATE + suffix)
        for suffix in ("=", "==", ".", "A", "\n", " ", "\0")
    },
    "certificate without signature": malformed(f"{HEAD}.{PAYLOAD}"),
    "certificate's signature with the high s": with_signature_of(R + (P256_ORDER - S).to_bytes(32, "big")),
    **{f"certificate's alg {alg!r}": header(alg=alg) for alg in ("none", "HS256", None)},
    **{f"certificate's typ {typ!r}": header(typ=typ) for typ in ("mcp-rs+jwt", None)},
    **{
        f"certificate's header member {name}": header(**{name: value})
        for name, value in FURTHER_MEMBERS.items()
    },
    "certificate's kid is an ARN": header("certificate_unknown_key", kid=ARN),
    "certificate's kid 5": header(kid=5),
    "certificate without kid": header(kid=None),
}
CLAIMS = {
    **{
        f"certificate without {name}": with_certificate(
            tokens.without_claim(CERTIFICATE, name), "certificate_claims"
        )
        for name in CERTIFIED
    },
    **{
        f"certificate's {name} in a list": claims("certificate_claims", **{name: [CERTIFIED[name]]})
        for name in CERTIFIED
    },
    "certificate with a sub": claims("certificate_claims", sub="alice"),
    "certificate with an unknown claim": claims("certificate_claims", ca=True),
    "certificate with a duplicate claim": content(
        json.dumps(CERTIFIED).encode()[:-1] + b',"exp":9999999999}'
    ),
    "certificate of an array": content(b"[]"),
    "certificate of another deployment": claims("certificate_wrong_issuer", iss="other"),
    "certificate for another endpoint": claims(
        "certificate_wrong_audience", aud=tokens.BINDING.audience + "/"
    ),
    "certificate from the future": claims(
        "certificate_not_yet_valid", iat=tokens.NOW + 6, nbf=tokens.NOW + 6
    ),
    "certificate that ends now": claims("certificate_expired", exp=tokens.NOW),
    "certificate of more than half an hour": claims("certificate_lifetime", exp=tokens.CERTIFIED_UNTIL + 1),
    "certificate that ends with the state": Attack(with_early_end(0), None, tokens.DELEGATED),
    "certificate that ends before the state": Attack(
        with_early_end(1), "outlives_certificate", tokens.DELEGATED
    ),
    "certificate that is revoked": with_certificate(
        CERTIFICATE, "certificate_revoked", verifier={"revoked": {CERTIFIED["jti"]}}
    ),
    "certificate beside one that is revoked": with_certificate(
        CERTIFICATE, None, verifier={"revoked": {"another"}}
    ),
}
CERTIFIED_KEYS = {
    "certified key with a d": key(d="AAAA"),
    **{f"certified key without {name}": key(**dict[str, Any]({name: None})) for name in JWK},
    "certified key of kty OKP": key(kty="OKP"),
    "certified key, declared as P-384": key(crv="P-384"),
    "certified key on secp256k1, declared as P-256": key(x=coordinate(OUTSIDE.x), y=coordinate(OUTSIDE.y)),
    "certified key with a short x": key(x=coordinate(1, 31)),
    "certified key with an x that is padded": key("certificate_too_long", x=JWK["x"] + "="),
    "certified key with an x that is not Base64": key("certificate_malformed", x="!" * 43),
    "certified key with an x that has stray bits": key("certificate_malformed", x="A" * 42 + "B"),
    "certified key with an x that is a number": key("certificate_not_a_string", x=5),
    "no certified key": claims("certificate_key", cnf={}),
    "certified key that is an array": claims("certificate_key", cnf={"jwk": [JWK]}),
    "certified key beside another": claims("certificate_key", cnf={"jwk": JWK, "kid": tokens.KEY.kid}),
}
CERTIFICATES = CHAINS | SPELLINGS | CLAIMS | CERTIFIED_KEYS
