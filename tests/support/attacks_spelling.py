"""Attacks on the spelling of a state: malformed tokens, and other spellings of valid ones."""

import zlib
from collections.abc import Callable
from typing import Any

from support.forgery import FORGES, Attack
from support.tokens import DELEGATED, DIRECT, ENCRYPTED, SIGNED, b64

SUFFIXES = ("=", ".", "A", "\n", " ", "\0", "\ud800")


def spelt(name: str, change: Callable[[str], str]) -> dict[str, Attack]:
    """Apply the change to the state, and to the signed token inside an encrypted state."""
    return {
        name: Attack(lambda forge: change(forge.token), "malformed"),
        f"{name}, inside": Attack(lambda forge: forge.wrap(change(forge.inner)), "malformed", ENCRYPTED),
    }


def replaced_by(value: object, reason: str = "malformed") -> Attack:
    return Attack(lambda forge: value, reason)


def appended(suffix: str) -> dict[str, Attack]:
    return spelt(f"{suffix!r} appended", lambda token: token + suffix)


def with_character(character: str) -> dict[str, Attack]:
    """Replace a character of the last part by one of base64 that base64url does not have."""
    return spelt(f"{character!r} inside", lambda token: f"{token[:-10]}{character}{token[-9:]}")


def full_width(token: str) -> str:
    return "".join(chr(ord(character) + 0xFEE0) for character in token)


def bomb() -> bytes:
    """50 MB of zeros, deflated: 50 times the same piece, because each process of tests makes it."""
    deflate = zlib.compressobj(9, wbits=-15)
    piece = deflate.compress(bytes(1_000_000)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return piece * 50 + deflate.flush()


BOMB = bomb()
NOT_STRINGS: tuple[Any, ...] = (None, 5, True, b"bytes", [], {})
SPELLINGS = {
    **{f"{value!r:.20} instead of a string": replaced_by(value, "not_a_string") for value in NOT_STRINGS},
    "empty": replaced_by(""),
    "only dots": replaced_by("...."),
    "full-width letters": Attack(lambda forge: full_width(forge.token), "malformed"),
    "one character over the limit": replaced_by("A" * 262_145, "too_long"),
    **{name: attack for suffix in SUFFIXES for name, attack in appended(suffix).items()},
    **with_character("+"),
    **with_character("/"),
    **spelt("a line feed put before", lambda token: "\n" + token),
    **spelt("the first dot doubled", lambda token: token.replace(".", "..", 1)),
    **spelt("without the last part", lambda token: token.rpartition(".")[0]),
    "without payload": Attack(
        lambda forge: forge.wrap(".".join((forge.inner.split(".")[0], "", forge.inner.split(".")[2]))),
        "signature",
    ),
    # tokens of other configurations and other servers
    "a signed state where states are encrypted": Attack(lambda forge: forge.inner, "malformed", ENCRYPTED),
    "an encrypted state where states are signed": Attack(
        lambda forge: FORGES[ENCRYPTED[forge.configuration.delegated]].token, "malformed", SIGNED
    ),
    "a state signed directly where signing is delegated": Attack(
        lambda forge: forge.wrap(FORGES[DIRECT[0]].inner), None, DELEGATED
    ),
    "a state of a certified key where signing is direct": Attack(
        lambda forge: forge.wrap(FORGES[DELEGATED[0]].inner), None, DIRECT
    ),
    # compression
    "a bomb as the claims, and zip": Attack(
        lambda forge: forge.signed(forge.header | {"zip": "DEF"}, BOMB), "header"
    ),
    "a bomb as the content": Attack(lambda forge: forge.wrap(BOMB), "malformed", ENCRYPTED),
    "a bomb as the whole state": replaced_by(b64(BOMB)),
}
