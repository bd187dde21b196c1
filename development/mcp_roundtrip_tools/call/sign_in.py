"""Get an access token from the local issuer of `make run`, which has no passwords."""

from __future__ import annotations

from typing import Any, Final, TypeGuard
from urllib.parse import urlencode, urlsplit

import httpx2

from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.client.http import member, parse_object, request
from mcp_roundtrip_tools.client.local_issuer import LOCAL_USER, LOOPBACK
from mcp_roundtrip_tools.client.refusals import challenge_parameter

FORM: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


def local_token(url: str, refusal: httpx2.Response, user: str | None, scopes: str | None) -> tuple[str, str]:
    """Return a token of the local issuer and the name of its user, after a request without one was refused.

    `url` is that of the endpoint, which gets the token: another computer's endpoint could name the issuer and
    the endpoint of this one (RFC 9728 §7.3). Without `user`, the first user of the issuer signs in; without
    `scopes`, with the user's scopes. Raises CallFailed and Unreachable.
    """
    metadata = challenge_parameter(refusal, "resource_metadata")
    if metadata is not None and _is_local(metadata) and not _is_local(url):
        raise _needs_token(None)
    resource = _document(metadata)
    issuer = next(iter(_strings(resource, "authorization_servers")), None)
    if issuer is None or not _is_local(issuer) or not _is_same(url, resource.get("resource")):
        raise _needs_token(issuer)
    server = _document(f"{issuer.rstrip('/')}/.well-known/oauth-authorization-server")
    token_endpoint = server.get("token_endpoint")
    if LOCAL_USER not in _strings(server, "grant_types_supported") or not _is_local(token_endpoint):
        raise _needs_token(issuer)
    form = {"grant_type": LOCAL_USER, "user": user, "scope": scopes, "resource": resource.get("resource")}
    body = urlencode({name: value for name, value in form.items() if value is not None}).encode()
    response = request("POST", token_endpoint, FORM, body)
    token, name = member(response, "access_token"), member(response, "user")
    if not isinstance(token, str):
        reason = member(response, "error_description") or response.status_code
        raise CallFailed(Status.USAGE, f"The local issuer gives no token: {reason}.")
    return token, str(name)


def _strings(document: dict[str, Any], name: str) -> list[str]:
    """Return the strings in a member that should be a list of them."""
    found = document.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _is_local(url: Any) -> TypeGuard[str]:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        return parts.hostname in LOOPBACK and parts.port != 0
    except ValueError:  # such as a port over 65535
        return False


def _is_same(url: str, resource: Any) -> bool:
    """Return whether tokens for a resource are for an endpoint of this computer, by any of its names.

    An application with one route for all paths has the origin as its resource; it serves every path below.
    """
    if not _is_local(url) or not _is_local(resource):
        return False
    one, other = urlsplit(url), urlsplit(resource)
    is_below = f"{one.path.rstrip('/')}/".startswith(f"{other.path.rstrip('/')}/")
    return (one.scheme, one.port) == (other.scheme, other.port) and is_below


def _document(url: str | None) -> dict[str, Any]:
    if url is None:
        return {}
    return parse_object(request("GET", url, {"accept": "application/json"}).text)


def _needs_token(issuer: str | None) -> CallFailed:
    named = f" of {issuer}" if issuer else ""
    return CallFailed(
        Status.USAGE, f"The endpoint needs an access token{named}. Pass it in the environment: TOKEN=…."
    )
