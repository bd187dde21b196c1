"""The principal: the verified identity of a caller."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_roundtrip.protocol.canonical import canonical_json, parse_json


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified identity. `kind` is how it was verified: "jwt", "lambda" or "iam"."""

    kind: str
    subject: str
    issuer: str | None = None
    client_id: str | None = None

    def canonical(self) -> str:
        """Return the text that states and tasks are bound to: canonical JSON."""
        return canonical_json([self.kind, self.issuer, self.subject, self.client_id]).decode()


def caller_binding(principal: Principal | None) -> str | None:
    """Return the text that a caller's states and tasks are bound to; None for an anonymous caller."""
    return None if principal is None else principal.canonical()


def user_binding(principal: Principal | None) -> str | None:
    """Return the text that a caller's links are bound to: the user without the client; None if anonymous.

    The page behind a link authenticates its visitor itself, with another client id than the MCP client's.
    """
    return None if principal is None else replace(principal, client_id=None).canonical()


def user_of(binding: str | None) -> str | None:
    """Return `user_binding` of the caller whose `caller_binding` is given."""
    if binding is None:
        return None
    kind, issuer, subject, _ = parse_json(binding)
    return user_binding(Principal(kind, subject, issuer))
