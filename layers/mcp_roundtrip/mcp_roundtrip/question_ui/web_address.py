"""Show a URL so that a user can judge it (client/elicitation, "Safe URL Handling")."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

# Browsers remove some of them from a URL, so that another host could follow.
_NOT_IN_URLS: Final = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
# Python's codec (IDNA 2003) maps them to other names than browsers do (UTS #46).
_DEVIATIONS: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
# Browsers read every host with a numeric last label as an IPv4 address: 0x7f.1 is 127.0.0.1.
_NUMERIC: Final = re.compile(r"(?:^|\.)(?:0x[0-9a-f]*|[0-9]+)\.?$")
_DOTTED: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_RESERVED: Final = "!#$%&'()*+,/:;=?@[]~"


class WebAddress(Struct, frozen=True):
    """A web address: `url` in ASCII, `host` in ASCII (punycode) with its port."""

    url: str
    host: str


def parse_web_address(url: str) -> WebAddress | None:
    """Return a web address; None for any other URL, which is shown as text only."""
    if not _WEB.match(url) or _NOT_IN_URLS.search(url):
        return None
    url = url.replace(
        "\\", "/"
    )  # as browsers read it: "https://evil.example\@bank.example" leads to the first
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
        user, _, _ = parts.netloc.rpartition("@")
        host = _ascii_host(parts.hostname or "")
    except ValueError:  # UnicodeError, too
        return None
    if not _HOST.fullmatch(host) or (_NUMERIC.search(host) and not _DOTTED.fullmatch(host)):
        return None
    shown = (f"[{host}]" if ":" in host else host) + port
    credentials = f"{quote(user, safe=_RESERVED)}@" if user else ""
    rest = url[len(parts.scheme) + len("://") + len(parts.netloc) :]
    return WebAddress(f"{parts.scheme.lower()}://{credentials}{shown}{quote(rest, safe=_RESERVED)}", shown)


def _ascii_host(name: str) -> str:
    """Return a host name in punycode. Raises UnicodeError for one that browsers read differently."""
    if _DEVIATIONS.search(name):
        raise UnicodeError
    return name if name.isascii() else name.encode("idna").decode("ascii")
