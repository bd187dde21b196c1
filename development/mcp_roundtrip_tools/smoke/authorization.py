"""Checks of authorization: the challenge, the metadata, the authorization server and the token."""

from collections.abc import Iterable, Mapping
from typing import Any

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
)

from mcp_roundtrip.auth.bearer import canonical_uri
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.client.http import (
    RENAMED,
    Unreachable,
    challenge_parameter,
    error_of,
    explain,
    is_trustworthy,
    json_object,
    member,
)
from mcp_roundtrip_tools.smoke.checked_endpoint import Endpoint, Findings


def check_without_token(endpoint: Endpoint, findings: Findings) -> str | None:
    """Check the response without a token; return the metadata's URL in its challenge, or an empty text.

    None if no credentials are needed. Raises Stopped if it is neither a server's response nor a refusal.
    """
    response = endpoint.discover(anonymous=True)
    has_credentials = endpoint.auth is not None
    if response.status_code == 200 and member(response, "result") is not None:
        if has_credentials:
            findings.wrong("anonymous", "The endpoint answers without credentials: AuthMode is none.")
        else:
            findings.ok("anonymous", "The endpoint answers without a token (AuthMode none).")
        return None
    if response.status_code not in (401, 403):
        raise findings.stop("anonymous", _explain(response))
    return _challenged(response, findings, None if has_credentials else "Pass TOKEN=…, CLIENT_ID=… or IAM=1.")


def _explain(response: httpx2.Response) -> str:
    """Return a sentence on the response to a request that no server should refuse."""
    error = error_of(response)
    if error is not None and response.status_code == 503:
        return (
            "The function cannot fetch the keys of the token issuer (503): check TokenIssuer, TokenJwksUri "
            "and the function's network; the log event is issuer_unavailable."
        )
    if error is not None and error[0] == INTERNAL_ERROR:
        return explain(response, "A setting of the function is wrong (log event misconfigured)")
    return explain(response)


def _challenged(response: httpx2.Response, findings: Findings, missing: str | None) -> str:
    url = challenge_parameter(response, "resource_metadata")
    renamed = next((name for name in RENAMED if name in response.headers), None)
    if missing is None and response.status_code == 403:
        findings.ok("anonymous", "A request without credentials gets 403.")
    elif url is not None and "resource_metadata" in response.headers.get("www-authenticate", ""):
        findings.ok(
            "anonymous", "A request without a token gets 401 and a challenge that names the metadata."
        )
    elif renamed is not None:
        findings.note(
            "anonymous",
            f"The challenge of the 401 arrives as {renamed}: clients that do not try the well-known "
            "URL find no authorization server.",
        )
    else:
        findings.note(
            "anonymous",
            f"A request without a token gets {response.status_code} without a challenge: clients can find "
            "the authorization server only at the well-known URL.",
        )
    if missing is not None:
        findings.wrong("token", f"The endpoint needs credentials. {missing}")
    return url or ""


def check_metadata(endpoint: Endpoint, named: str, findings: Findings) -> Mapping[str, Any]:
    """Check the metadata of the resource (RFC 9728), which a challenge may have `named`; return it, or {}."""
    urls = build_protected_resource_metadata_discovery_urls(named, endpoint.url)
    url, document = _first_document(endpoint, urls[:1] if named else urls)
    if document is None:
        text = "There is no metadata" if not named else f"The challenge names {named}, which has no metadata"
        if named:
            findings.wrong(
                "metadata", f"{text}: route /.well-known/oauth-protected-resource to the function."
            )
        else:
            findings.note("metadata", f"{text}: clients cannot discover the authorization server.")
        return {}
    resource, issuers = document.get("resource"), _texts(document.get("authorization_servers"))
    if not isinstance(resource, str) or not issuers:
        findings.wrong("metadata", f"{url} names no resource or no authorization server.")
        return {}
    if canonical_uri(resource).rstrip("/") != canonical_uri(endpoint.url).rstrip("/"):
        findings.wrong(
            "metadata",
            f"The endpoint calls itself {resource}, not {endpoint.url}: clients refuse this, and tokens "
            "for one are refused at the other. Use that URL, or set EndpointUri.",
        )
    else:
        findings.ok("metadata", f"The metadata names {', '.join(issuers)}.")
    return document


def check_issuer(endpoint: Endpoint, metadata: Mapping[str, Any], findings: Findings) -> Mapping[str, Any]:
    """Check the metadata of the authorization server (RFC 8414, OpenID Connect); return it, or nothing."""
    if not metadata:
        return {}
    issuer = _texts(metadata["authorization_servers"])[0]
    build = build_oauth_authorization_server_metadata_discovery_urls  # fails for a malformed URL
    url, document = _first_document(endpoint, build(issuer, endpoint.url) if is_trustworthy(issuer) else [])
    if document is None:
        findings.wrong(
            "issuer",
            f"The authorization server {issuer} has no metadata or a wrong URL: clients cannot sign in.",
        )
        return {}
    if document.get("issuer") != issuer:
        findings.wrong(
            "issuer",
            f"{url} is of the issuer {document.get('issuer')!r}, not of {issuer!r}: correct TokenIssuer.",
        )
    elif "S256" not in _texts(document.get("code_challenge_methods_supported")):
        findings.note(
            "issuer", f"{url} does not offer PKCE with S256: clients that follow MCP refuse to sign in."
        )
    else:
        findings.ok("issuer", f"{issuer} publishes its metadata.")
    return document


def check_token(endpoint: Endpoint, findings: Findings) -> None:
    """Check that the endpoint accepts the token, and speaks the current version. Raises Stopped if not."""
    response = endpoint.discover()
    if response.status_code == 401 and endpoint.token is not None:
        said = challenge_parameter(response, "error_description")
        raise findings.stop(
            "token",
            f"The endpoint refuses the token (401{f': {said}' if said else ''}). The log event unauthorized "
            "has the reason; with AuthMode jwt, the issuer, the audience or the time of the token is wrong.",
        )
    if response.status_code in (403, 503):
        raise findings.stop("token", _explain(response))
    if response.status_code == 200 and endpoint.auth:
        accepted = "token" if endpoint.token is not None else "signature"
        findings.ok("token", f"The endpoint accepts the {accepted}.")
    result = member(response, "result")
    if not isinstance(result, dict):
        raise findings.stop("discovery", _explain(response))
    versions = _texts(result.get("supportedVersions"))
    if PROTOCOL_VERSION not in versions:
        text = f"The server does not support MCP {PROTOCOL_VERSION}, but {', '.join(versions)}."
        raise findings.stop("discovery", text)
    findings.ok("discovery", f"The server speaks MCP {PROTOCOL_VERSION}.")


def _first_document(endpoint: Endpoint, urls: Iterable[str]) -> tuple[str, Mapping[str, Any] | None]:
    url = ""
    for url in urls:
        try:
            response = endpoint.get(url)
        except Unreachable:
            continue
        if response.status_code == 200 and (document := json_object(response.text)):
            return url, document
    return url, None


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
