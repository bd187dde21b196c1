"""Who calls, and how each event source and AuthMode says so: events as AWS sends them."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from corpus.aws_account import URL
from corpus.deployment import AUDIENCE, World
from mcp_roundtrip_tools.events import Event
from mcp_roundtrip_tools.events import event as http_api_event
from support.event_sources import converted
from support.token_issuer import Key, claims

SOURCES: Final = ("http_api", "http_api_1_0", "rest_api", "function_url", "alb", "alb_multi_value", "direct")

MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "none": SOURCES,
    "bearer": SOURCES[:-1],
    "jwt": ("http_api", "http_api_1_0", "rest_api"),
    "lambda": ("http_api", "http_api_1_0", "rest_api"),
    "iam": ("http_api", "rest_api", "function_url"),
}
"""AuthMode -> the event sources that can identify a caller in this way, or need not."""

ISSUER: Final = "https://issuer.example.com"
ISSUER_KEY: Final = Key("issuer-1")
SCOPES: Final = "db:read db:write"


def settings_of(mode: str, world: World) -> dict[str, str]:
    """Return the settings of an AuthMode. The issuer of access tokens is served if it needs one."""
    chosen = {"MCP_AUTH_MODE": mode}
    if mode == "bearer":
        world.account.key_set = {"keys": [ISSUER_KEY.jwk()]}
        keys = {"MCP_TOKEN_JWKS_URI": f"{URL}/keys", "MCP_TOKEN_ALGORITHMS": "ES256"}
        return {**chosen, "MCP_TOKEN_ISSUER": ISSUER, **keys}
    return {**chosen, "MCP_SCOPE_CONTEXT_KEY": "scope"} if mode == "lambda" else chosen


def access_token(world: World, person: str) -> str:
    """Return an access token of a person."""
    now = world.clock.now
    members = {"iss": ISSUER, "aud": AUDIENCE, "client_id": "client-1", "exp": int(now) + 86_400}
    return ISSUER_KEY.sign(claims(now, **members, sub=person), typ="at+jwt")


def authorizer(mode: str, person: str) -> dict[str, Any]:
    """Return the authorizer context in payload format 2.0."""
    if mode == "jwt":
        given = {"iss": ISSUER, "sub": person, "client_id": "client-1", "scope": SCOPES}
        return {"jwt": {"claims": given, "scopes": None}}
    if mode == "lambda":
        return {"lambda": {"principalId": person, "scope": SCOPES}}
    if mode == "iam":
        arn = f"arn:aws:sts::123456789012:assumed-role/{person}/session"
        user = {"accessKey": "AKIA", "accountId": "123456789012", "callerId": "AROA", "userArn": arn}
        return {"iam": {**user, "userId": f"AROA{person.upper()}:session", "cognitoIdentity": None}}
    return {}


def event_of(
    source: str,
    mode: str,
    person: str | None,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: str | None,
) -> Event:
    """Return the event of an HTTP request; the person is None for a request without credentials."""
    path, _, query = path.partition("?")
    event = http_api_event(method, path, headers)
    event |= {"rawQueryString": query, "body": body, "isBase64Encoded": False}
    if query:
        event["queryStringParameters"] = dict(parse_qsl(query))
    return converted(source, event, None if person is None else authorizer(mode, person))


def described(method: str, path: str, headers: Mapping[str, str], body: str | None) -> dict[str, Any]:
    shown = {"http": f"{method} {path}", "headers": dict(headers)}
    if body is None or body[:1] != "{":
        return {**shown, **({} if body is None else {"body": body})}
    try:
        return {**shown, "body": json.loads(body)}
    except ValueError:
        return {**shown, "body": body}
