"""An authorization server's keys and tokens, and the claims of a valid token."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from mcp_roundtrip.auth.bearer import BearerAuthenticator
from mcp_roundtrip.auth.issuer_keys import ALGORITHMS, IssuerKeys
from mcp_roundtrip_testing.ports import AUDIENCE
from mcp_roundtrip_testing.task_table import FakeClock

ISSUER = "https://id.test/tenant"
JWKS_URI = "https://id.test/keys"

SIGNATURE_ALGORITHMS = frozenset(name for names in ALGORITHMS.values() for name in names)

CURVES: dict[str, type[Any]] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


@cache
def private_key(kid: str, algorithm: str) -> Any:
    """Return the private key of a name, generated once per test run."""
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm]())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 1024 if kid == "short" else 2048)


@dataclass(frozen=True)
class Key:
    """A signing key; `members` are added to its JWK."""

    kid: str = "one"
    algorithm: str = "ES256"
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def private(self) -> Any:
        return private_key(self.kid, self.algorithm)

    def jwk(self, *, private: bool = False) -> dict[str, Any]:
        """Return the JWK with `alg` and `use`."""
        key = self.private if private else self.private.public_key()
        kind: type[Any] = ECAlgorithm if self.algorithm in CURVES else RSAAlgorithm
        kind = OKPAlgorithm if self.algorithm == "EdDSA" else kind
        described = {**kind.to_jwk(key, as_dict=True), "kid": self.kid, "alg": self.algorithm, "use": "sig"}
        return {**{name: member for name, member in described.items() if name != "key_ops"}, **self.members}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a token. None removes a member of the header."""
        members = {"kid": self.kid, **header}
        algorithm = str(members.pop("alg", self.algorithm))
        return jwt.encode(dict(claims), self.private, algorithm, headers=members)


ONE, TWO, RSA = Key(), Key("two"), Key("rsa", "RS256")


def jwks(*keys: Key | Mapping[str, Any]) -> bytes:
    return json.dumps({"keys": [key.jwk() if isinstance(key, Key) else key for key in keys]}).encode()


def claims(now: float, **changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token. None removes one."""
    given = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "client_id": "app",
        "iat": int(now),
        "exp": int(now) + 300,
        "scope": "db:read db:write",
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


@dataclass
class Documents:
    """A `fetch` that returns a document or raises an exception by URL, records requests and takes time."""

    found: dict[str, bytes | Exception]
    clock: FakeClock
    latency_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    def fetch(self, url: str, timeout_s: float) -> bytes:
        assert 0 < timeout_s <= 3
        self.asked.append(url)
        self.clock.advance(min(self.latency_s, timeout_s))
        answer = self.found[url]
        if isinstance(answer, Exception):
            raise answer
        return answer


def authenticator(
    clock: FakeClock,
    *keys: Key,
    algorithms: frozenset[str] = frozenset({"ES256", "RS256"}),
    requires_at_jwt: bool = False,
) -> BearerAuthenticator:
    """Return an authenticator for tokens of these keys."""
    documents = Documents({JWKS_URI: jwks(*(keys or (ONE, RSA)))}, clock)
    held = IssuerKeys(ISSUER, JWKS_URI, documents.fetch, clock)
    return BearerAuthenticator(ISSUER, (AUDIENCE,), algorithms, held.verify, clock, requires_at_jwt)
