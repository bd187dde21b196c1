"""The users who can sign in, and names of users and scopes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

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
    """Return users from names separated by spaces or commas. Without names, DEFAULT_USERS.

    `scopes` are those of each user, separated by spaces; None means those that a client requests. Raises
    ValueError.
    """
    found = None if scopes is None else parse_scopes(scopes)
    given = names.replace(",", " ").split() or [each.name for each in DEFAULT_USERS]
    return tuple(User(check_name(name), found) for name in dict.fromkeys(given))


def check_name(name: str) -> str:
    """Return the name of a user. Raises ValueError for one that is empty or has control characters."""
    if not _NAME.fullmatch(name):
        raise ValueError("the name of a user has 1 to 128 characters, and no control characters")
    return name


def parse_scopes(text: str) -> frozenset[str]:
    """Return scopes that are separated by spaces. Raises ValueError."""
    return check_scopes(text.split(" "))


def check_scopes(scopes: Sequence[str] | Iterable[str]) -> frozenset[str]:
    """Return the scopes. Raises ValueError for one that no token can have."""
    found = frozenset(scopes) - {""}
    for scope in found:
        if not _SCOPE.fullmatch(scope):
            raise ValueError(
                f"{scope[:80]!r} is no scope: a scope is visible ASCII without quotes (RFC 6749)"
            )
    return found
