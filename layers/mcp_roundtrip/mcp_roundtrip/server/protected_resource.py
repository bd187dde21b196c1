"""The metadata of the endpoint as a protected resource (RFC 9728), and challenges that lead clients to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_roundtrip.auth.scope_hierarchy import with_prefix

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


class ProtectedResource(Struct, frozen=True):
    """The metadata of a protected resource. `resource` is its URI, `scopes` are those to request first."""

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
        scopes = with_prefix(self.scopes, self.scope_prefix)
        optional = {"scopes_supported": scopes, "resource_name": self.name}
        return {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value},
        }

    def challenge(self, error: str | None = None, scopes: Iterable[str] | None = None) -> str:
        """Return a value for WWW-Authenticate (RFC 6750 §3, RFC 9728 §5.1). `error`: None without a token."""
        needed = self.scopes if scopes is None else scopes
        scope = " ".join(with_prefix(needed, self.scope_prefix))
        given = {"error": error, "scope": scope, "resource_metadata": self.url}
        return "Bearer " + ", ".join(f"{name}={_quoted(text)}" for name, text in given.items() if text)


def _quoted(text: str) -> str:
    """Return a quoted-string (RFC 9110 §5.6.4) without the characters that it cannot contain."""
    plain = re.sub(r"[^\x20-\x7e]", "", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
