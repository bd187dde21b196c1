"""URIs in normal form (RFC 3986 §6.2.2), so that equivalent spellings compare equal.

Scheme and authority are in lower case, percent-encoded unreserved characters are decoded, characters outside
ASCII are encoded, and dot segments are removed. For http, https, ws, wss and ftp, a default port is removed
and an empty path becomes `/` (§6.2.3).

Two deliberate differences from the RFC: userinfo is compared without case, which can only make more URIs
equal; and the path of a URI that is not hierarchical (`urn:a/../b`) stays as it is.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

RESERVED: Final = re.compile(r"[:/?#\[\]@!$&'()*+,;=]")
"""A reserved character (RFC 3986 §2.2)."""

_INVALID: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[\x00-\x20\x7f\"<>\\^`{|}\ud800-\udfff]")
_ENCODED: Final = re.compile(r"%(..)|([^\x00-\x7f])")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_COMPONENTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

_OCTET: Final = 0xE000
"""A percent-encoded octet is the character at this code point plus the octet.

So it counts as one character, and no search or split can begin inside it. The code points are private: a URI
that contains one has it percent-encoded.
"""


class NormalUri(NamedTuple):
    """A URI in normal form: `key` is equal for equivalent URIs.

    `spelled` is as long as `key` and has the client's case in the authority, for the values of variables:
    `notes://{name}` has a name where the RFC expects a host.
    """

    key: str
    spelled: str


def normalize_uri(text: str) -> NormalUri:
    """Return the normal form of a URI.

    Raises ValueError for a character that no URI has and for a percent sign without two digits.
    """
    plain = normalize_octets(text)
    parts = _COMPONENTS.fullmatch(plain)
    if parts is None:
        return NormalUri(plain, plain)
    scheme, authority, path, rest = parts[1].lower(), parts[2], _without_dot_segments(parts[3]), parts[4]
    if authority is None:
        path = f"/.{path}" if path.startswith("//") else path  # `//` would start an authority
        head = f"{scheme}:"
    elif scheme in _DEFAULT_PORTS:
        host, path = re.sub(rf":({_DEFAULT_PORTS[scheme]})?\Z", "", authority), path or "/"
        head = f"{scheme}://{host.lower()}"
    else:
        head = f"{scheme}://{authority}"
    return NormalUri(head.lower() + path + rest, head + path + rest)


def normalize_octets(text: str) -> str:
    """Return part of a URI with one character per character or encoded octet. Raises ValueError."""
    if invalid := _INVALID.search(text):
        problem = (
            "a '%' needs two hexadecimal digits" if invalid[0] == "%" else f"{invalid[0]!r} is not allowed"
        )
        raise ValueError(problem)
    return _ENCODED.sub(_normal_octets, text)


def _normal_octets(found: re.Match[str]) -> str:
    if found[2]:
        return "".join(chr(_OCTET + octet) for octet in found[2].encode())
    octet = int(found[1], 16)
    return chr(octet) if _UNRESERVED.match(chr(octet)) else chr(_OCTET + octet)


def decode_octets(text: str) -> str:
    """Decode part of a normal form. Raises ValueError if its encoded octets are not UTF-8."""
    return bytes(ord(character) & 0xFF for character in text).decode()


def decode_reserved(key: str) -> str:
    """Return the URI that a normal form means if its encoded reserved characters are decoded."""
    octets = ((character, ord(character) - _OCTET) for character in key)
    return "".join(
        character if octet < 0 else chr(octet) if RESERVED.match(chr(octet)) else f"%{octet:02X}"
        for character, octet in octets
    )


def _without_dot_segments(path: str) -> str:
    """Remove dot segments (RFC 3986 §5.2.4) from a path that begins with a slash."""
    if not path.startswith("/"):
        return path
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if kept and segments[-1] in (".", "..") else "")
