"""What the issuer publishes, compared with what API Gateway's JWT authorizer needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import urlopen

TIMEOUT_S: Final = 3

Fetch = Callable[[str], bytes]
"""Takes a URL. Raises OSError."""


def issuer_of(values: Mapping[str, str]) -> str:
    """Return the issuer of the tokens that this AuthMode verifies, or an empty string."""
    return values.get("TokenIssuer", "") if values.get("AuthMode") in ("bearer", "jwt") else ""


def fetch(url: str) -> bytes:
    """Return a document of the issuer. Raises OSError."""
    with urlopen(url, timeout=TIMEOUT_S) as response:  # noqa: S310  (an https URL; rule unreachable_issuer)
        document: bytes = response.read()
    return document


def refused_issuer(values: Mapping[str, str], fetch: Fetch = fetch) -> str | None:
    """Return why API Gateway cannot verify tokens of the issuer, as a sentence; None if it may.

    None for other modes, and for an issuer that this computer cannot reach: API Gateway might.
    """
    if values.get("AuthMode") != "jwt":
        return None
    issuer = issuer_of(values)
    try:
        metadata = json.loads(fetch(issuer.rstrip("/") + "/.well-known/openid-configuration"))
        keys = json.loads(fetch(metadata["jwks_uri"]))["keys"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if metadata.get("issuer") != issuer:
        return f"TokenIssuer must be {metadata.get('issuer')}, as in the issuer's metadata, and not {issuer}."
    if not any(_is_rsa(key) for key in keys):
        return (
            f"{issuer} has no RSA key, and API Gateway's JWT authorizer verifies RSA signatures only. "
            "Use AuthMode bearer."
        )
    return None


def _is_rsa(key: Any) -> bool:
    return (
        isinstance(key, dict) and key.get("kty") == "RSA" and key.get("use", "sig") == "sig" and "kid" in key
    )
