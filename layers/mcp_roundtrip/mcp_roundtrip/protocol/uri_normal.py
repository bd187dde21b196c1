"""URIs in normal form (RFC 3986 §6.2.2), so that all spellings of one URI are compared as one text.

Scheme and authority are compared without case, percent-encoded bytes with upper-case digits, unreserved
characters decoded, what is not ASCII encoded, and the path without dot segments. For http and its relatives
§6.2.3 adds: no default or empty port, and `/` for an empty path.

Two deliberate differences from the letter of the RFC: userinfo is compared without case as well, which can
only make more URIs one; and the path of a URI that is not hierarchical (`urn:a/../b`) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Units: TypeAlias = Sequence[str]
"""A URI cut into characters and whole percent-encoded bytes, so that no boundary falls inside one."""

UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
_ENCODED: Final = re.compile(r"%..|[^\x00-\x7f]")
_UNIT: Final = re.compile(r"%..|.", re.DOTALL)
_CASE: Final = re.compile(r"%..|\{[^{}]*\}|[A-Z]+")
_COMPONENTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_TEMPLATE_HEAD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://(?:\{[^{}]*\}|[^/?#{}])*)?")
_DOT_SEGMENT: Final = re.compile(r"/\.\.?(?:/|\Z)")
_PORT: Final = re.compile(r":([0-9]*)\Z")
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


@dataclass(frozen=True, slots=True)
class NormalUri:
    """A URI in normal form.

    `units` are compared: up to the position `folded` they are in lower case. `spelled` are the same units in
    the client's case, for values of variables: `notes://{name}` has a name where the RFC expects a host.
    (Hosts of http and its relatives have no case there either.)
    """

    units: Units
    spelled: Units
    folded: int

    @property
    def key(self) -> str:
        """The text that equivalent URIs have in common."""
        return "".join(self.units)


def normal_uri(text: str) -> NormalUri:
    """The normal form of a URI.

    Raises ValueError for characters that no URI has, half of a surrogate pair among them, and for a percent
    sign without two digits.
    """
    plain = _percent_normal(text)
    parts = _COMPONENTS.fullmatch(plain)
    if parts is None:
        units = _UNIT.findall(plain)
        return NormalUri(units, units, 0)
    scheme, authority, path, rest = parts[1].lower(), parts[2], parts[3], parts[4]
    path = _without_dot_segments(path)
    if authority is None:
        head = f"{scheme}:"
        path = f"/.{path}" if path.startswith("//") else path  # it would be read as an authority
    else:
        if (default_port := _DEFAULT_PORTS.get(scheme)) is not None:
            authority, path = _server(authority, default_port), path or "/"
        head = f"{scheme}://{authority}"
    spelled = _UNIT.findall(head + path + rest)
    folded = _UNIT.findall(fold(head))
    return NormalUri([*folded, *spelled[len(folded) :]], spelled, len(folded))


def units_of(text: str) -> Units:
    """The units of a part of a URI, in the normal form of percent-encoding. Raises ValueError as above."""
    return _UNIT.findall(_percent_normal(text))


def decode(units: Iterable[str]) -> str:
    """The text that `units` encode. Raises ValueError (UnicodeDecodeError) when it is not UTF-8."""
    return b"".join(bytes.fromhex(unit[1:]) if len(unit) == 3 else unit.encode() for unit in units).decode()


def fold(text: str) -> str:
    """`text` in lower case, but for percent-encoded bytes and a template's expressions."""
    return _CASE.sub(lambda found: found[0] if found[0][0] in "%{" else found[0].lower(), text)


def reference_key(text: str) -> str:
    """What equivalent spellings of a URI or of a URI template have in common; other text is its own key."""
    try:
        return normal_uri(text).key
    except ValueError:  # a template has braces
        pass
    try:
        encoded = _ENCODED.sub(_normal, text)
    except ValueError:  # it is neither
        return text
    head = _TEMPLATE_HEAD.match(encoded)
    return encoded if head is None else fold(head[0]) + encoded[head.end() :]


def equivalent(text: str, known: Iterable[str]) -> str:
    """The one of these URIs and templates that `text` is another spelling of, or else `text` itself."""
    key = reference_key(text)
    return next((each for each in known if reference_key(each) == key), text)


def _percent_normal(text: str) -> str:
    if forbidden := _FORBIDDEN.search(text):
        raise ValueError(f"{forbidden[0]!r} cannot stand in a URI")
    if _STRAY_PERCENT.search(text):
        raise ValueError("a percent sign is not followed by two hexadecimal digits")
    return _ENCODED.sub(_normal, text)


def _normal(found: re.Match[str]) -> str:
    unit = found[0]
    if unit[0] != "%":
        return "".join(f"%{byte:02X}" for byte in unit.encode())
    character = chr(int(unit[1:], 16))
    return character if character in UNRESERVED else unit.upper()


def _without_dot_segments(path: str) -> str:
    """RFC 3986 §5.2.4, for paths that begin with a slash."""
    if not path.startswith("/") or not _DOT_SEGMENT.search(path):
        return path
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _server(authority: str, default_port: str) -> str:
    """An authority whose host is a name in the DNS or an address, without an empty or default port."""
    userinfo, at, server = authority.rpartition("@")
    if (port := _PORT.search(server)) and port[1] in ("", default_port):
        server = server[: port.start()]
    return f"{userinfo}{at}{fold(server)}"
