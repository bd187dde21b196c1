"""Protected resource metadata (RFC 9728), and the challenges that lead clients to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

OPENID_SCOPES: Final = frozenset({"openid", "profile", "email", "address", "phone"})
"""Scopes of the issuer itself, which have no prefix (OpenID Connect Core 3.1.2.1 and 5.4)."""

MAX_AGE_S: Final = 3_600
"""How long clients may cache the document."""

_OUTSIDE_QUOTED_STRING: Final = re.compile(r"[^\x20-\x7e]")


class ProtectedResource(Struct, frozen=True):
    """The metadata of a protected resource.

    `resource` is its canonical URI, `authorization_servers` are issuers, `scopes` those that clients should
    request first; a challenge tells them which others a request needs. Clients are shown scopes after
    `scope_prefix`, except OPENID_SCOPES.
    """

    resource: str
    authorization_servers: Sequence[str]
    scopes: Sequence[str] = ()
    name: str | None = None
    scope_prefix: str = ""

    @property
    def url(self) -> str:
        """The URL of the document, with the well-known path before the resource's (RFC 9728 §3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the document: its own, and the root's for clients that only try that one."""
        return frozenset({WELL_KNOWN, urlsplit(self.url).path})

    def document(self) -> dict[str, Any]:
        """Return the document (RFC 9728 §2)."""
        optional = {"scopes_supported": self._prefixed(self.scopes), "resource_name": self.name}
        return {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value},
        }

    def challenge(self, error: str | None = None, scopes: Iterable[str] | None = None) -> str:
        """Return a value for WWW-Authenticate (RFC 6750 §3, RFC 9728 §5.1).

        `error` is the code of RFC 6750, None if the request had no token. `scopes` are all that the request
        needs; None means those to request first.
        """
        scope = " ".join(self._prefixed(self.scopes if scopes is None else scopes))
        given = {"error": error, "scope": scope, "resource_metadata": self.url}
        return "Bearer " + ", ".join(f"{name}={_quoted(text)}" for name, text in given.items() if text)

    def _prefixed(self, scopes: Iterable[str]) -> list[str]:
        return [scope if scope in OPENID_SCOPES else self.scope_prefix + scope for scope in scopes]


def _quoted(text: str) -> str:
    """Return a quoted-string (RFC 9110 §5.6.4) without the characters that it cannot contain."""
    plain = _OUTSIDE_QUOTED_STRING.sub("", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
