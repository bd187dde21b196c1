"""Sign access tokens (RFC 9068) and ID tokens with a key of this run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

LIFETIME_S: Final = 3_600
"""How long an access token is valid."""

ALGORITHM: Final = "RS256"
"""OpenID Connect requires it, and API Gateway's JWT authorizers verify no other kind."""


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass(frozen=True)
class TokenSigner:
    """Signs tokens of an issuer."""

    issuer: str
    _key: rsa.RSAPrivateKey = field(default_factory=_new_key, repr=False)
    _kid: str = field(default_factory=lambda: secrets.token_urlsafe(8))

    def access_token(self, user: str, scopes: Iterable[str], *, resource: str, client_id: str) -> str:
        """Return an access token for a resource."""
        claims = {"aud": resource, "sub": user, "client_id": client_id, "scope": " ".join(sorted(scopes))}
        return self._sign({**claims, "jti": secrets.token_urlsafe(12)}, "at+jwt")

    def id_token(self, user: str, *, client_id: str, nonce: str | None) -> str:
        """Return an ID token for a client (OpenID Connect Core 2)."""
        claims = {"aud": client_id, "sub": user, "name": user}
        return self._sign({**claims, **({} if nonce is None else {"nonce": nonce})}, "JWT")

    def key_set(self) -> dict[str, Any]:
        """Return the JWK Set with the public key."""
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        members = {name: public[name] for name in ("kty", "n", "e")}
        return {"keys": [{**members, "kid": self._kid, "alg": ALGORITHM, "use": "sig"}]}

    def _sign(self, claims: dict[str, Any], kind: str) -> str:
        now = int(time.time())
        given = {"iss": self.issuer, "iat": now, "exp": now + LIFETIME_S, **claims}
        return jwt.encode(given, self._key, ALGORITHM, headers={"kid": self._kid, "typ": kind})
