"""The syntax of scopes, the scopes that imply others (basic/authorization, "Step-Up"), and the prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mcp_roundtrip.errors import DefinitionError

_ALLOWED: Final = r"[\x21\x23-\x5b\x5d-\x7e]{1,256}"
"""RFC 6749 §3.3, with a limit of 256 characters."""

OFFLINE_ACCESS: Final = "offline_access"
"""Requests a refresh token, which no resource requires (basic/authorization "Refresh Tokens")."""

OPENID_SCOPES: Final = frozenset({"openid", "profile", "email", "address", "phone"})
"""Scopes of the issuer, without a prefix (OpenID Connect Core 3.1.2.1 and 5.4)."""


def validate_scopes(given: Iterable[str]) -> tuple[str, ...]:
    """Return the scopes without duplicates, in their order. Raises DefinitionError if they are invalid."""
    scopes = () if isinstance(given, str) else tuple(dict.fromkeys(given))
    if isinstance(given, str) or not all(isinstance(s, str) and re.fullmatch(_ALLOWED, s) for s in scopes):
        raise DefinitionError(
            f"scopes={given!r:.200} are not scopes; use a list of str such as ['orders.read'], without "
            "spaces, quotes and backslashes"
        )
    if OFFLINE_ACCESS in scopes:
        raise DefinitionError(
            f"scopes: {OFFLINE_ACCESS!r} is for clients that want refresh tokens; remove it"
        )
    return scopes


class ScopeHierarchy(Struct, frozen=True):
    """`implied` maps a scope to all scopes that it implies, directly or indirectly."""

    implied: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_direct(cls, hierarchy: Mapping[str, Sequence[str]]) -> ScopeHierarchy:
        """Build a hierarchy from the scopes that each scope implies directly. Raises DefinitionError."""
        if not isinstance(hierarchy, Mapping):
            raise DefinitionError(
                f"scopes={hierarchy!r:.200} does not map scopes to those that they imply, such as "
                "{'orders.write': ['orders.read']}; write the scopes of a tool in its decorator"
            )
        direct = {name: validate_scopes(narrower) for name, narrower in hierarchy.items()}
        validate_scopes(direct)
        return cls({name: _reached(direct, name) for name in direct})

    def expand(self, granted: Iterable[str]) -> frozenset[str]:
        """Return the granted scopes and all that they imply."""
        held = frozenset(granted)
        return held.union(*(self.implied.get(scope, ()) for scope in held))

    def satisfies(self, granted: Iterable[str], required: Iterable[str]) -> bool:
        return self.expand(granted).issuperset(required)

    def narrowest(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Return the scopes that imply none of the others, in alphabetical order."""
        among = set(scopes)
        return tuple(sorted(scope for scope in among if among.isdisjoint(self.implied.get(scope, ()))))


def _reached(direct: Mapping[str, Sequence[str]], start: str) -> frozenset[str]:
    reached: set[str] = set()
    ahead = list(direct[start])
    while ahead:
        scope = ahead.pop()
        if scope == start:
            raise DefinitionError(f"scopes: {start!r} implies itself; remove it from what it implies")
        if scope not in reached:
            reached.add(scope)
            ahead += direct.get(scope, ())
    return frozenset(reached)


def with_prefix(scopes: Iterable[str], prefix: str) -> list[str]:
    """Return the scopes as clients request them from the issuer: all but OPENID_SCOPES with the prefix."""
    return [scope if scope in OPENID_SCOPES else prefix + scope for scope in scopes]
