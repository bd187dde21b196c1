"""Whether tokens of the identity provider can be accepted, by its metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import urlopen

TIMEOUT_S: Final = 3

Fetch = Callable[[str], bytes]
"""Takes a URL. Raises OSError."""


def fetch(url: str) -> bytes:
    """Return a document of the issuer. Raises OSError."""
    with urlopen(url, timeout=TIMEOUT_S) as response:  # noqa: S310  (TokenIssuer is an https URL)
        document: bytes = response.read()
    return document


def refused_issuer(values: Mapping[str, str], fetch: Fetch = fetch) -> str | None:
    """Return why no token of the issuer could be accepted, as a sentence; None if one may.

    None for other modes, and for an issuer that this computer cannot reach: AWS might.
    """
    mode, issuer = values.get("AuthMode"), values.get("TokenIssuer", "")
    if mode not in ("bearer", "jwt"):
        return None
    try:
        metadata = json.loads(fetch(issuer.rstrip("/") + "/.well-known/openid-configuration"))
        named, keys = metadata["issuer"], json.loads(fetch(metadata["jwks_uri"]))["keys"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if named != issuer:
        return f"TokenIssuer must be {named}, as in the issuer's metadata, and not {issuer}."
    if mode == "jwt" and not any(map(_is_rsa, keys)):
        return (
            f"{issuer} has no RSA key, and API Gateway's JWT authorizer verifies RSA signatures only. "
            "Use AuthMode bearer."
        )
    return None


def _is_rsa(key: Any) -> bool:
    return (
        isinstance(key, dict) and key.get("kty") == "RSA" and key.get("use", "sig") == "sig" and "kid" in key
    )
