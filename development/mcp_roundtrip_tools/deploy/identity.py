"""Parameters with which no token of the identity provider could ever be accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
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


_PRIVATE_NAMES: Final = (".local", ".internal", ".localhost", ".lan")
_UUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def refused_identity(values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each of the parameters with which no token could be accepted."""
    issuer = issuer_of(values)
    host, path = urlsplit(issuer).hostname or "", urlsplit(issuer).path
    start, is_metadata, _ = issuer.partition("/.well-known/")
    if is_metadata:
        yield f"TokenIssuer must be the issuer, {start}, and not the URL of its metadata."
    by_api_gateway = values.get("AuthMode") == "jwt"
    if by_api_gateway and issuer and (not issuer.startswith("https://") or _is_private(host)):
        yield (
            f"TokenIssuer {issuer} cannot be used: API Gateway reads the issuer's metadata and keys over "
            "HTTPS from the internet. Use AuthMode bearer, in a VPC that reaches the issuer."
        )
    elif host in ("localhost", "127.0.0.1"):
        yield f"TokenIssuer {issuer} is on this computer, and functions on AWS cannot reach it."
    if host == "sts.windows.net" and not re.fullmatch(rf"/{_UUID}/", path):
        yield "TokenIssuer must be https://sts.windows.net/<tenant id>/, with the slash: so tokens have it."
    if host == "login.microsoftonline.com":
        yield from _refused_entra(path, values)
    if host.endswith(".auth0.com") and not issuer.endswith("/"):
        yield f"TokenIssuer must be {issuer}/, with the slash: so Auth0's tokens have it."
    is_cognito = re.fullmatch(r"cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?", host)
    if issuer.endswith("/") and (is_cognito or re.search(r"/realms/[^/]+/$", issuer)):
        yield f"TokenIssuer must be {issuer.rstrip('/')}, without the slash at the end: so tokens have it."
    if host.endswith(".amazoncognito.com"):
        yield (
            "TokenIssuer must be https://cognito-idp.<Region>.amazonaws.com/<user pool id>: the user pool's "
            "domain has the pages for signing in, and is not the issuer of its tokens."
        )


def _refused_entra(path: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield what v2.0 tokens of Entra ID cannot have: they have the tenant's id, and the API's client id."""
    if not re.fullmatch(rf"/{_UUID}/v2\.0", path):
        yield (
            "TokenIssuer must be https://login.microsoftonline.com/<tenant id>/v2.0, with the id of one "
            "tenant: so tokens have it. Set the API's requestedAccessTokenVersion to 2."
        )
    given = [each.strip() for each in values.get("TokenAudience", "").split(",")]
    if not any(re.fullmatch(_UUID, each) for each in given):
        yield "TokenAudience must be the client id of the API's registration: Entra ID writes it to aud."


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_NAMES)
