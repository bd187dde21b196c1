"""Scopes that imply others, and whether what was granted suffices (basic/authorization, "Step-Up")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcp_roundtrip.errors import DefinitionError

_SCOPE_TOKEN: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
"""RFC 6749 §3.3, with a bound of our own."""


OFFLINE_ACCESS: Final = "offline_access"
"""For clients that want refresh tokens: no resource requires it (basic/authorization "Refresh Tokens")."""


def scope_tokens(given: Iterable[str]) -> tuple[str, ...]:
    """These scopes, each once, in their order. Raises DefinitionError for what is no scope, or no list."""
    scopes = () if isinstance(given, str) else tuple(dict.fromkeys(given))
    if isinstance(given, str) or not all(isinstance(s, str) and _SCOPE_TOKEN.fullmatch(s) for s in scopes):
        raise DefinitionError(
            f"scopes={given!r:.200} are not scopes; use a list of str such as ['orders.read'], without "
            "spaces, quotes and backslashes"
        )
    if OFFLINE_ACCESS in scopes:
        raise DefinitionError(
            f"scopes: {OFFLINE_ACCESS!r} is for clients that want refresh tokens; remove it"
        )
    return scopes


@dataclass(frozen=True, slots=True)
class Scopes:
    """A hierarchy: `implied` maps each scope that implies others to all that it implies, directly or not."""

    implied: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, hierarchy: Mapping[str, Sequence[str]]) -> Scopes:
        """From broader scopes to the narrower ones that they imply directly. Raises DefinitionError."""
        direct = {name: scope_tokens(narrower) for name, narrower in hierarchy.items()}
        scope_tokens(direct)
        return cls({name: _reached(direct, name) for name in direct})

    def expanded(self, granted: Iterable[str]) -> frozenset[str]:
        """What was granted, and all that it implies."""
        held = frozenset(granted)
        return held.union(*(self.implied.get(scope, ()) for scope in held))

    def suffice(self, granted: Iterable[str], required: Iterable[str]) -> bool:
        """Whether every required scope was granted or is implied by one that was."""
        return self.expanded(granted).issuperset(required)

    def narrowest(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Those that imply none of the others, in alphabetical order: the least that is of any use."""
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
