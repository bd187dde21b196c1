"""OAuth 2.1 bearer tokens, verified here: JWTs that the issuer has signed for this endpoint (RFC 9068).

PyJWT checks the signature alone. What it is lax about is checked before (one spelling of a header, no
duplicate members, no critical extensions) and what needs a clock after it, by the clock that is given.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_roundtrip.auth.callers import Caller, Unauthorized
from mcp_roundtrip.auth.token_claims import (
    principal_from_claims,
    scopes_from_claims,
    split_scopes,
    validate_access_token,
)
from mcp_roundtrip.canonical import parse

if TYPE_CHECKING:
    from jwt import PyJWS

MAX_TOKEN: Final = 16_384
"""Characters; an HTTP API lets no more than 10,240 bytes of headers through, a load balancer 64 KiB."""

LEEWAY_S: Final = 30
"""How far the issuer's clock may be ahead of this one."""

_CREDENTIALS: Final = re.compile(r"bearer(?: +([A-Za-z0-9._~+/-]+=*))?", re.IGNORECASE)
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""RFC 9068 §2.1 asks for the second; many issuers write the first, and Amazon Cognito none."""

_AT_JWT: Final = _TYPES - {"jwt"}


class Keys(Protocol):
    """The issuer's keys."""

    def find(self, kid: str, algorithm: str) -> Any:
        """The public key, None for an unknown one. Raises IssuerUnavailable when nobody can say."""


@dataclass(frozen=True, slots=True)
class BearerAuthenticator:
    """Goes by the token in the Authorization header; no other place counts (RFC 6750 §2.1).

    `issuer` is the exact `iss` of its tokens, `audience` this endpoint's canonical URI, which has to be in
    their `aud` (RFC 8707), `clock` gives epoch seconds. `demands_type` accepts the `typ` of RFC 9068 only.
    """

    issuer: str
    audience: str
    algorithms: frozenset[str]
    keys: Keys
    clock: Callable[[], float]
    demands_type: bool = False

    def caller(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """The caller whom the token names. Raises Unauthorized or IssuerUnavailable."""
        claims = self._verified(bearer_token(headers.get("authorization")))
        self._check(claims)
        try:
            return Caller(principal_from_claims(claims), scopes_from_claims(claims, split_scopes))
        except Unauthorized:
            raise _invalid("subject") from None

    def _verified(self, token: str) -> Mapping[str, Any]:
        if not _COMPACT.fullmatch(token):
            raise _invalid("malformed")
        algorithm, kid = self._header(token.partition(".")[0])
        key = self.keys.find(kid, algorithm)
        if key is None:
            raise _invalid("unknown_key")
        return _object(_signed(token, key, algorithm), "claims")

    def _header(self, encoded: str) -> tuple[str, str]:
        try:
            header = _object(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), "header")
        except ValueError:
            raise _invalid("header") from None
        algorithm, kid, typ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        types = _AT_JWT if self.demands_type else _TYPES
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            raise _invalid("algorithm")
        if not isinstance(kid, str) or not isinstance(typ, str) or typ.lower() not in types:
            raise _invalid("header")
        # No extension is understood here (RFC 7515 §4.1.11), and `b64` changes what is signed (RFC 7797).
        if not header.keys().isdisjoint({"crit", "b64"}):
            raise _invalid("header")
        return algorithm, kid

    def _check(self, claims: Mapping[str, Any]) -> None:
        if claims.get("iss") != self.issuer:
            raise _invalid("issuer")
        if not _names(self.audience, claims.get("aud")):
            raise _invalid("audience")
        validate_access_token(claims)
        now = self.clock()
        if not now < _time(claims, "exp"):
            raise _invalid("expired")
        if any(_time(claims, name) > now + LEEWAY_S for name in ("nbf", "iat") if name in claims):
            raise _invalid("not_yet_valid")


def bearer_token(header: str | None) -> str:
    """The token of an Authorization header. Raises Unauthorized; several headers in one are not resolved."""
    value = "" if header is None else header.strip(" \t")
    if value.partition(" ")[0].lower() != "bearer":
        raise Unauthorized("no_token")
    # Bounded first, so that nothing runs over more than that.
    credentials = _CREDENTIALS.fullmatch(value) if len(value) <= MAX_TOKEN else None
    if credentials is None or credentials[1] is None:
        raise Unauthorized("authorization_header", "invalid_request")
    return credentials[1]


def _signed(token: str, key: Any, algorithm: str) -> bytes:
    """The payload. Raises Unauthorized if the signature is not this key's."""
    from jwt.exceptions import PyJWTError  # only at the first token

    try:
        payload: bytes = _pyjws().decode(token, key, algorithms=[algorithm])
    except (PyJWTError, ValueError, TypeError):
        raise _invalid("signature") from None
    return payload


@cache
def _pyjws() -> PyJWS:
    from jwt import PyJWS  # only at the first token

    return PyJWS()


def _names(resource: str, audience: Any) -> bool:
    """Whether a resource is, or is among, the audience of a token."""
    among = audience if isinstance(audience, list) else [audience]
    return resource in among or canonical_uri(resource) in (
        canonical_uri(uri) for uri in among if isinstance(uri, str)
    )


def canonical_uri(uri: str) -> str:
    """With scheme and host in lower case, and `/` for no path: clients may write them in other ways.

    Source: basic/authorization "Canonical Server URI", RFC 3986 §6.2.3. All else makes a difference.
    """
    scheme, separator, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    # Outside ASCII lower case joins what differs.
    if not separator or not (scheme + host).isascii():
        return uri
    return f"{scheme.lower()}://{host.lower()}/{path}"


def _object(document: bytes, what: str) -> dict[str, Any]:
    try:
        value = parse(document)
    except ValueError:
        raise _invalid(what) from None
    if not isinstance(value, dict):
        raise _invalid(what)
    return value


def _time(claims: Mapping[str, Any], name: str) -> float:
    """A NumericDate. Raises Unauthorized."""
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _invalid(name)
    return value


def _invalid(reason: str) -> Unauthorized:
    return Unauthorized(f"token_{reason}", "invalid_token")
