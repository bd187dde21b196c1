"""The issuer of a run: its users, and the tokens that it signs (RFC 9068)."""

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from mcp_roundtrip_tools.template.model import TemplateError


class OAuthError(ValueError):
    """A request is refused. `code` is of RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2 or RFC 8707 §2."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description


_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,126}[^\s\x00-\x1f\x7f])?")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
"""A scope token (RFC 6749 §3.3)."""


@dataclass(frozen=True, slots=True)
class User:
    """A user. `scopes` are those that a token gets if none are selected; None means those requested."""

    name: str
    scopes: frozenset[str] | None = None

    def default_scopes(self, requested: Iterable[str]) -> frozenset[str]:
        """Return the scopes to select for a client that requests these."""
        return frozenset(requested) if self.scopes is None else self.scopes


DEFAULT_USERS: Final = (User("ada"), User("bob"))


def make_users(names: str, scopes: str | None = None) -> tuple[User, ...]:
    """Return users of names separated by spaces or commas; without names DEFAULT_USERS. Raises OAuthError.

    `scopes` are those of each user, separated by spaces; None means those that a client requests.
    """
    found = None if scopes is None else parse_scopes(scopes)
    given = names.replace(",", " ").split() or [each.name for each in DEFAULT_USERS]
    return tuple(User(check_name(name), found) for name in dict.fromkeys(given))


def check_name(name: str) -> str:
    """Return the name of a user. Raises OAuthError for one that is empty or has control characters."""
    if not _NAME.fullmatch(name):
        raise OAuthError(
            "invalid_request", "the name of a user has 1 to 128 characters, and no control characters"
        )
    return name


def parse_scopes(scopes: str | Iterable[str]) -> frozenset[str]:
    """Return scopes; those of a text are separated by spaces. Raises OAuthError for one no token can have."""
    found = frozenset(scopes.split(" ") if isinstance(scopes, str) else scopes) - {""}
    for scope in found:
        if not _SCOPE.fullmatch(scope):
            text = f"{scope[:80]!r} is no scope: a scope is visible ASCII without quotes (RFC 6749)"
            raise OAuthError("invalid_scope", text)
    return found


LIFETIME_S: Final = 86_400
"""How long an access token is valid."""

ALGORITHM: Final = "RS256"
"""API Gateway's JWT authorizers verify no other kind."""

CONSOLE_CLIENT = "mcp-roundtrip-console"


class LocalIssuer:
    """Issues tokens for the endpoint of a run. `users` can sign in; the first is preselected.

    `url` is the `iss` of the tokens. `resource` returns their `aud`: the URI of the endpoint.
    """

    def __init__(self, url: str, users: Sequence[User], resource: Callable[[], str]) -> None:
        self.url = url
        self.users = tuple(users)
        self._resource = resource
        self._key = rsa.generate_private_key(65537, 2048)
        self._kid = secrets.token_urlsafe(8)

    @property
    def resource(self) -> str:
        """The URI of the endpoint."""
        return self._resource()

    def token(
        self, user: str, scopes: Iterable[str] | None = None, *, client_id: str = CONSOLE_CLIENT
    ) -> str:
        """Return an access token (RFC 9068) for any name, by default with its scopes. Raises OAuthError."""
        known = {each.name: each for each in self.users}
        found = known.get(user) or User(check_name(user), self.users[0].scopes if self.users else None)
        granted = found.default_scopes(()) if scopes is None else parse_scopes(scopes)
        now = int(time.time())
        claims = {
            **{"iss": self.url, "aud": self.resource, "sub": user, "client_id": client_id},
            **{"scope": " ".join(sorted(granted)), "jti": secrets.token_urlsafe(12)},
            **{"iat": now, "exp": now + LIFETIME_S},
        }
        return jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self._kid, "typ": "at+jwt"})

    def key_set(self) -> dict[str, Any]:
        """Return the JWK Set with the public key."""
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        members = {name: public[name] for name in ("kty", "n", "e")}
        return {"keys": [{**members, "kid": self._kid, "alg": ALGORITHM, "use": "sig"}]}


def read_users(
    names: str | None, scopes: str | None, parameters: Mapping[str, str]
) -> tuple[User, ...] | None:
    """Return the users of the local issuer, or None if it does not run. Raises TemplateError."""
    mode, has_issuer = parameters.get("AuthMode", "bearer"), bool(parameters.get("TokenIssuer"))
    if names is None and scopes is None:
        return make_users("") if "AuthMode" in parameters and mode == "bearer" and not has_issuer else None
    if mode != "bearer" or has_issuer:
        other = "TokenIssuer" if has_issuer else f"AuthMode {mode}"
        raise TemplateError(f"USER and SCOPES (--user, --scopes) are for the local issuer: leave out {other}")
    try:
        return make_users(names or "", scopes)
    except OAuthError as error:
        raise TemplateError(f"--user or --scopes: {error}") from None


def describe_issuer(issuer: LocalIssuer) -> str:
    """Return what the start message says: where callers sign in, and as whom."""
    names = " or ".join(user.name for user in issuer.users)
    scopes = issuer.users[0].scopes
    granted = "" if scopes is None else f", with the scopes {' '.join(sorted(scopes)) or '(none)'}"
    first = issuer.users[0].name
    return f"Callers sign in as {names}{granted}: clients at {issuer.url}, make call with USER={first}."
