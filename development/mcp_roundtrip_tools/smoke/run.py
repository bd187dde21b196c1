"""All checks of an endpoint, in order."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from mcp_roundtrip_tools.client.connection import Connection
from mcp_roundtrip_tools.client.http import Unreachable, is_trustworthy
from mcp_roundtrip_tools.smoke import authorization, calls
from mcp_roundtrip_tools.smoke.calls import Call
from mcp_roundtrip_tools.smoke.credentials import aws_signature, fetch_token
from mcp_roundtrip_tools.smoke.endpoint import Endpoint
from mcp_roundtrip_tools.smoke.findings import Findings, Stopped


@dataclass(frozen=True)
class Settings:
    """What to check. `token_parameters` are those of the token request; None: the `resource` (RFC 8707)."""

    url: str
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str = field(default="", repr=False)
    token_parameters: Mapping[str, str] | None = None
    iam: bool = False
    call: Call | None = None
    tls: ssl.SSLContext | None = None


def check(settings: Settings, findings: Findings) -> bool:
    """Run all checks until one stops them; return whether nothing is wrong."""
    try:
        _check(settings, findings)
    except Unreachable as error:
        findings.wrong("connection", str(error))
    except Stopped:
        pass
    return findings.passed


def _check(settings: Settings, findings: Findings) -> None:
    endpoint = _endpoint(settings, findings)
    named = authorization.check_without_token(
        endpoint if settings.client_id is None else replace(endpoint, token=""), findings
    )
    published = authorization.Published()
    if named is not None and not settings.iam:
        published = authorization.check_metadata(endpoint, named, findings)
    server = authorization.check_issuer(endpoint, published, findings)
    if not findings.passed and not (settings.token or settings.client_id or settings.iam):
        return
    if settings.client_id is not None:
        given = settings.token_parameters
        asked = {"resource": published.resource or settings.url} if given is None else given
        credentials = (settings.client_id, settings.client_secret)
        endpoint = replace(endpoint, token=fetch_token(endpoint, server, *credentials, asked, findings))
    authorization.check_token(endpoint, published, findings)
    with endpoint.connect() as connection:
        _check_calls(connection, settings.call, findings)


def _check_calls(connection: Connection, call: Call | None, findings: Findings) -> None:
    tools = calls.check_tools(connection, findings)
    if call is not None and call.tool not in tools:
        raise findings.stop("call", f"The endpoint has no tool {call.tool}: correct CALL.")
    calls.check_owner(connection, call.tool if call else next(iter(tools)), findings)
    if call is None:
        findings.note("call", "No tool was called: pass CALL='TOOL {\"argument\": …}' with a tool that asks.")
    else:
        calls.check_call(connection, call, findings)


def _endpoint(settings: Settings, findings: Findings) -> Endpoint:
    parts = urlsplit(settings.url)
    if not parts.hostname or parts.scheme not in ("https", "http"):
        raise findings.stop("url", f"{settings.url!r} is not a URL. Use the output McpUrl of the stack.")
    if not is_trustworthy(settings.url):
        raise findings.stop(
            "url", "URL must begin with https://; only a server on this computer may use http://."
        )
    if parts.query or parts.fragment:
        raise findings.stop("url", "URL must have no query and no fragment.")
    try:
        sign = aws_signature(settings.url) if settings.iam else None
    except ValueError as error:
        raise findings.stop("url", str(error)) from error
    return Endpoint(settings.url, settings.token, sign, settings.tls)
