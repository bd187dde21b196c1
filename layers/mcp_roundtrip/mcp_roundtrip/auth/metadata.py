"""What leads clients to the authorization server: RFC 9728's document, and challenges that name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

MAX_AGE_S: Final = 3_600
"""How long the document may be kept."""

_OUTSIDE_QUOTED_STRING: Final = re.compile(r"[^\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class ResourceMetadata:
    """What a protected resource says of itself.

    `resource` is its canonical URI, `authorization_servers` are issuers, `scopes` those that are enough to
    begin with: for more, clients are challenged.
    """

    resource: str
    authorization_servers: Sequence[str]
    scopes: Sequence[str] = ()
    name: str | None = None

    @property
    def url(self) -> str:
        """Where the document is: between host and path of the resource (RFC 9728 §3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    @property
    def paths(self) -> frozenset[str]:
        """The paths that it is served at: its own, and the root's for clients that look no further."""
        return frozenset({WELL_KNOWN, urlsplit(self.url).path})

    def document(self) -> dict[str, Any]:
        """The protected resource metadata (RFC 9728 §2)."""
        optional = {"scopes_supported": list(self.scopes), "resource_name": self.name}
        return {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value},
        }

    def challenge(self, error: str | None = None, scopes: Iterable[str] | None = None) -> str:
        """A value for WWW-Authenticate (RFC 6750 §3, RFC 9728 §5.1).

        `error` is RFC 6750's code, None where no token was sent; `scopes` are all that the request needs
        (None: those to begin with).
        """
        scope = " ".join(self.scopes if scopes is None else scopes)
        given = {"error": error, "scope": scope, "resource_metadata": self.url}
        return "Bearer " + ", ".join(f"{name}={_quoted(text)}" for name, text in given.items() if text)


def _quoted(text: str) -> str:
    """A quoted-string (RFC 9110 §5.6.4); what it cannot hold is left out."""
    plain = _OUTSIDE_QUOTED_STRING.sub("", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
