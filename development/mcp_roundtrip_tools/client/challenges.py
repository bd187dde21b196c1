"""The challenges of refused requests (RFC 6750 §3, RFC 9728 §5.1)."""

from __future__ import annotations

import re
from typing import Final

from mcp_roundtrip_tools.client.exchange import Response

RENAMED: Final = ("x-amzn-remapped-www-authenticate", "x-mcp-challenge")
"""The names that API Gateway gives to the header."""


def challenge_of(response: Response) -> str:
    """Return the challenge of a response, also if API Gateway renamed its header; empty without."""
    names = ("www-authenticate", *RENAMED)
    return next((response.headers[name] for name in names if name in response.headers), "")


def challenge_parameter(challenge: str, name: str) -> str | None:
    """Return a parameter of a challenge, or None."""
    found = re.search(rf'{name}="([^"]*)"', challenge)
    return found[1] if found else None
