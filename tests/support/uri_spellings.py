"""Spellings of a URI that RFC 3986 §6.2.2 calls equivalent."""

import re
from urllib.parse import quote

from hypothesis import strategies as st

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_UNIT = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL)
PORTS = {"http": ":80", "https": ":443"}


@st.composite
def spelled(draw: st.DrawFn, text: str, *, folds: bool = False) -> str:
    """Generate spellings of a part of a URI: other percent-encoding, and other case if `folds`."""

    def respelled(unit: str) -> str:
        if folds and draw(st.booleans()):
            unit = unit.swapcase() if len(unit) == 1 else unit
        if len(unit) == 1 and unit in UNRESERVED and draw(st.booleans()):
            unit = f"%{ord(unit):02X}"
        return unit.lower() if len(unit) == 3 and draw(st.booleans()) else unit

    return "".join(map(respelled, _UNIT.findall(text)))


@st.composite
def spellings(draw: st.DrawFn, uri: str) -> str:
    """Generate spellings of a hierarchical URI without a port."""
    found = re.fullmatch(r"([a-z]+)://([^/?#]*)([^?#]*)(.*)", quote(uri, safe=":/?#[]@!$&'()*+,;=%~"))
    assert found is not None
    scheme, host, path, rest = found.groups()
    given = "".join(letter.upper() if draw(st.booleans()) else letter for letter in scheme)
    port = draw(st.sampled_from(["", ":", PORTS[scheme]])) if scheme in PORTS else ""
    segments = path.split("/")[1:] if path else []
    if path == "/" and scheme in PORTS and draw(st.booleans()):
        segments = []
    respelled = [f"/{draw(spelled(segment))}" for segment in segments]
    return f"{given}://{draw(spelled(host, folds=True))}{port}{''.join(respelled)}{draw(spelled(rest))}"
