"""The normal form of URIs and URI templates, in which equivalent spellings are equal (RFC 3986 §6.2).

Scheme and authority are in lower case, percent-encoded unreserved characters are decoded, and characters
outside ASCII are encoded. For http, https, ws, wss and ftp, a default port is removed and an empty path is
`/`. A URI with a `.` or `..` segment has no normal form: it is refused, not resolved.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

RESERVED: Final = ":/?#[]@!$&'()*+,;="
"""The reserved characters (RFC 3986 §2.2)."""

EXPRESSION: Final = re.compile(r"(\{[^{}]*\})")
"""An expression of a template."""

_INVALID: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[\x00-\x20\x7f\"<>\\^`{|}\ud800-\udfff]")
_ENCODED: Final = re.compile(r"%(..)|([^\x00-\x7f]+)")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_COMPONENTS: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*):(?://((?:\{[^{}/?]*\}|[^/?#{}])*))?(.*)", re.DOTALL
)
_DOT_SEGMENT: Final = re.compile(r"[^?#]*/\.\.?(?:[/?#]|\Z)")
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class NormalUri(NamedTuple):
    """A normal form. `key` is equal for equivalent URIs.

    `spelled` differs only in the authority: unless it is a host by the scheme, it has the client's case, for
    values such as that of `notes://{name}`.
    """

    key: str
    spelled: str


def normalize_uri(uri: str) -> NormalUri:
    """Return the normal form of a URI. Raises ValueError with the reason if it has none."""
    return _normalize(_normalize_octets(uri))


def normalize_template(text: str) -> NormalUri:
    """Return the normal form of a template, with its expressions as they are. Raises ValueError."""
    pieces = enumerate(EXPRESSION.split(text))
    return _normalize("".join(each if index % 2 else _normalize_octets(each) for index, each in pieces))


def decode(text: str) -> str:
    """Decode a part of a normal form. Raises ValueError if its octets are not UTF-8."""
    return re.sub("%(..)", _octet, text).encode("latin-1").decode()


def decode_reserved(normal: str) -> str:
    """Return a normal form with its encoded reserved characters decoded."""
    return re.sub("%(..)", lambda found: each if (each := _octet(found)) in RESERVED else found[0], normal)


def spelling_key(text: str) -> str:
    """Return a key that is equal for equivalent spellings of a URI or template; for other text, the text."""
    try:
        return normalize_template(text).key
    except ValueError:
        return text


def _normalize(text: str) -> NormalUri:
    found = _COMPONENTS.fullmatch(text)
    if found is None:
        return NormalUri(text, text)
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if (authority is not None or rest.startswith("/")) and _DOT_SEGMENT.match(rest):
        raise ValueError("remove '.' and '..' segments")
    if authority is None:
        return NormalUri(f"{scheme}:{rest}", f"{scheme}:{rest}")
    port = _DEFAULT_PORTS.get(scheme)
    if port:
        authority = re.sub(rf":({port})?\Z", "", authority)
        has_path = "{+" in authority or rest.lstrip("{").startswith("/")
        rest = rest if has_path else f"/{rest}"
    pieces = enumerate(EXPRESSION.split(authority))
    folded = "".join(each if index % 2 else each.lower() for index, each in pieces)
    return NormalUri(f"{scheme}://{folded}{rest}", f"{scheme}://{folded if port else authority}{rest}")


def _normalize_octets(text: str) -> str:
    if invalid := _INVALID.search(text):
        raise ValueError(
            f"{invalid[0]!r} cannot be there; percent-encode it, and write variables as {{name}}"
        )
    return _ENCODED.sub(_normal_octets, text)


def _normal_octets(found: re.Match[str]) -> str:
    if found[2]:
        return "".join(f"%{octet:02X}" for octet in found[2].encode())
    octet = _octet(found)
    return octet if _UNRESERVED.match(octet) else found[0].upper()


def _octet(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))
