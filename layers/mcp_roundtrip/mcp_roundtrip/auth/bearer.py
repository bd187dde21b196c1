"""Verify OAuth 2.1 bearer tokens: JWTs that the issuer signed for this endpoint (RFC 9068).

PyJWT verifies only the signature. `jwt.decode` accepts duplicate members, any `typ`, `b64` without `crit`,
times that are texts, an empty subject, and ID tokens; its leeway for `nbf` and `iat` also prolongs `exp`, its
clock cannot be passed in, and it compares audiences with their case.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.auth.callers import (
    Caller,
    Unauthorized,
    caller_from_claims,
    client_from_claims,
    split_scopes,
    validate_access_token,
)
from mcp_roundtrip.protocol.strict_json import parse_object

MAX_TOKEN: Final = 16_384
"""Limit in characters. An HTTP API accepts 10,240 bytes of headers, a load balancer 64 KiB."""

LEEWAY_S: Final = 30
"""How far the issuer's clock may be ahead."""

_CREDENTIALS: Final = re.compile(r"bearer(?: +([A-Za-z0-9._~+/-]+=*))?", re.IGNORECASE)
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""RFC 9068 §2.1 requires the second. Many issuers use the first, and Amazon Cognito has no `typ`."""

_AT_JWT: Final = _TYPES - {"jwt"}


class BearerAuthenticator(Struct, frozen=True):
    """Identifies callers by the token in the Authorization header (RFC 6750 §2.1).

    `issuer` is the exact `iss` of the tokens. One of `audiences` must be in their `aud`: the endpoint's
    canonical URI (RFC 8707), or what the issuer writes instead. `verify` is `IssuerKeys.verify`. `clock`
    returns epoch seconds. `requires_at_jwt` requires the `typ` of RFC 9068, `requires_client` a client claim.
    """

    issuer: str
    audiences: tuple[str, ...]
    algorithms: frozenset[str]
    verify: Callable[[str, str, str], bytes | None]
    clock: Callable[[], float]
    requires_at_jwt: bool = False
    requires_client: bool = False

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller that the token identifies. Raises Unauthorized or IssuerUnavailable."""
        claims = self._verify(bearer_token(headers.get("authorization")))
        self._check_claims(claims)
        try:
            return caller_from_claims(claims, split_scopes)
        except Unauthorized:
            raise _invalid("subject") from None

    def _verify(self, token: str) -> Mapping[str, Any]:
        if not _COMPACT.fullmatch(token):
            raise _invalid("malformed")
        algorithm, kid = self._check_header(token.partition(".")[0])
        try:
            payload = self.verify(token, kid, algorithm)
        except ValueError:
            raise _invalid("signature") from None
        if payload is None:
            raise _invalid("unknown_key")
        try:
            return parse_object(payload)
        except ValueError:
            raise _invalid("claims") from None

    def _check_header(self, encoded: str) -> tuple[str, str]:
        try:
            header = parse_object(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        except ValueError:
            raise _invalid("header") from None
        algorithm, kid, typ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        types = _AT_JWT if self.requires_at_jwt else _TYPES
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            raise _invalid("algorithm")
        if not isinstance(kid, str) or not isinstance(typ, str) or typ.lower() not in types:
            raise _invalid("header")
        # No extension is supported (RFC 7515 §4.1.11), and `b64` changes what is signed (RFC 7797).
        if not header.keys().isdisjoint({"crit", "b64"}):
            raise _invalid("header")
        return algorithm, kid

    def _check_claims(self, claims: Mapping[str, Any]) -> None:
        if claims.get("iss") != self.issuer:
            raise _invalid("issuer")
        if not _includes_any(self.audiences, claims.get("aud")):
            raise _invalid("audience")
        validate_access_token(claims)
        if self.requires_client and client_from_claims(claims) is None:
            raise _invalid("id_token")
        now = self.clock()
        if not now < _numeric_date(claims, "exp"):
            raise _invalid("expired")
        if any(_numeric_date(claims, name) > now + LEEWAY_S for name in ("nbf", "iat") if name in claims):
            raise _invalid("not_yet_valid")


def bearer_token(header: str | None) -> str:
    """Return the token of an Authorization header. Raises Unauthorized, also for several headers joined."""
    value = "" if header is None else header.strip(" \t")
    if value.partition(" ")[0].lower() != "bearer":
        raise Unauthorized("no_token")
    # The length is checked first, so that the pattern never runs over a longer text.
    credentials = _CREDENTIALS.fullmatch(value) if len(value) <= MAX_TOKEN else None
    if credentials is None or credentials[1] is None:
        raise Unauthorized("authorization_header", "invalid_request")
    return credentials[1]


def _includes_any(audiences: Sequence[str], aud: Any) -> bool:
    given = {canonical_uri(uri) for uri in (aud if isinstance(aud, list) else [aud]) if isinstance(uri, str)}
    return not given.isdisjoint(map(canonical_uri, audiences))


def canonical_uri(uri: str) -> str:
    """Return a URI with scheme and host in lower case, and `/` for an empty path (RFC 3986 §6.2.3)."""
    scheme, separator, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    # Outside ASCII, different characters can have the same lower case.
    if not separator or not (scheme + host).isascii():
        return uri
    return f"{scheme.lower()}://{host.lower()}/{path}"


def _numeric_date(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _invalid(name)
    return value


def _invalid(reason: str) -> Unauthorized:
    return Unauthorized(f"token_{reason}", "invalid_token")
