"""Who is calling, as the event source has established it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_roundtrip.canonical import canonical


@dataclass(frozen=True, slots=True)
class Principal:
    """`kind` says who established it: "jwt", "lambda" or "iam"."""

    kind: str
    subject: str
    issuer: str | None = None
    client_id: str | None = None

    def canonical(self) -> str:
        """The one spelling that states are bound to."""
        return canonical([self.kind, self.issuer, self.subject, self.client_id]).decode()


def caller_binding(principal: Principal | None) -> str | None:
    """What states and tasks of this caller are bound to; None for an anonymous one."""
    return None if principal is None else principal.canonical()


def user_binding(principal: Principal | None) -> str | None:
    """What links of this caller are bound to: the user, whatever client they use; None for an anonymous one.

    The page behind a link signs its visitor in by itself, and cannot know the id of the MCP client.
    """
    return None if principal is None else replace(principal, client_id=None).canonical()
