"""Parameters with which no token of the identity provider could ever be accepted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.deploy.issuer import issuer_of

_PRIVATE_NAMES: Final = (".local", ".internal", ".localhost", ".lan")
_UUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

Rule = Callable[[Mapping[str, str]], str | None]


def metadata_instead_of_issuer(values: Mapping[str, str]) -> str | None:
    """Return a sentence if the issuer is the URL of its metadata."""
    issuer = issuer_of(values)
    start, found, _ = issuer.partition("/.well-known/")
    return f"TokenIssuer must be the issuer, {start}, and not the URL of its metadata." if found else None


def unreachable_issuer(values: Mapping[str, str]) -> str | None:
    """Return a sentence if API Gateway or a function cannot reach the issuer."""
    issuer = issuer_of(values)
    by_api_gateway = values.get("AuthMode") == "jwt"
    if by_api_gateway and issuer and (not issuer.startswith("https://") or _is_private(issuer)):
        return (
            f"TokenIssuer {issuer} cannot be used: API Gateway reads the issuer's metadata and keys over "
            "HTTPS from the internet. Use AuthMode bearer, in a VPC that reaches the issuer."
        )
    if _host(issuer) in ("localhost", "127.0.0.1"):
        return f"TokenIssuer {issuer} is on this computer, and functions on AWS cannot reach it."
    return None


def entra_issuer(values: Mapping[str, str]) -> str | None:
    """Return a sentence if the issuer is not the `iss` of Entra ID's tokens."""
    issuer = issuer_of(values)
    path = urlsplit(issuer).path
    if _host(issuer) == "sts.windows.net" and not re.fullmatch(rf"/{_UUID}/", path):
        return "TokenIssuer must be https://sts.windows.net/<tenant id>/, with the slash: so tokens have it."
    if _host(issuer) == "login.microsoftonline.com" and not re.fullmatch(rf"/{_UUID}/v2\.0", path):
        return (
            "TokenIssuer must be https://login.microsoftonline.com/<tenant id>/v2.0, with the id of one "
            "tenant: so tokens have it. Set the API's requestedAccessTokenVersion to 2."
        )
    return None


def entra_audience(values: Mapping[str, str]) -> str | None:
    """Return a sentence if Entra ID cannot write the audience: its v2.0 tokens have the API's client id."""
    issuer = issuer_of(values)
    if _host(issuer) != "login.microsoftonline.com":
        return None
    given = [each.strip() for each in values.get("TokenAudience", "").split(",")]
    if any(re.fullmatch(_UUID, each) for each in given):
        return None
    return "TokenAudience must be the client id of the API's registration: Entra ID writes it to aud."


def trailing_slash(values: Mapping[str, str]) -> str | None:
    """Return a sentence if the slash at the end of the issuer differs from the provider's tokens."""
    issuer = issuer_of(values)
    if _host(issuer).endswith(".auth0.com") and not issuer.endswith("/"):
        return f"TokenIssuer must be {issuer}/, with the slash: so Auth0's tokens have it."
    has_none = _is_cognito(issuer) or re.search(r"/realms/[^/]+/$", issuer)
    if has_none and issuer.endswith("/"):
        return f"TokenIssuer must be {issuer.rstrip('/')}, without the slash at the end: so tokens have it."
    return None


def cognito_domain(values: Mapping[str, str]) -> str | None:
    """Return a sentence if the issuer is the domain of a Cognito user pool."""
    issuer = issuer_of(values)
    if not _host(issuer).endswith(".amazoncognito.com"):
        return None
    return (
        "TokenIssuer must be https://cognito-idp.<Region>.amazonaws.com/<user pool id>: the user pool's "
        "domain has the pages for signing in, and is not the issuer of its tokens."
    )


RULES: Final[tuple[Rule, ...]] = (
    metadata_instead_of_issuer,
    unreachable_issuer,
    entra_issuer,
    entra_audience,
    trailing_slash,
    cognito_domain,
)
"""Each takes the values of all parameters, and returns a sentence or None."""


def _host(issuer: str) -> str:
    return urlsplit(issuer).hostname or ""


def _is_cognito(issuer: str) -> bool:
    return re.fullmatch(r"cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?", _host(issuer)) is not None


def _is_private(issuer: str) -> bool:
    host = _host(issuer)
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_NAMES)
