"""The events of each source, and the responses that it expects.

- HTTP APIs, payload formats 2.0 and 1.0:
  https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
- REST APIs: https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
- Function URLs: https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
- Application Load Balancers:
  https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html
- Direct invocation: the event is a JSON-RPC message, and the result is the response message. The caller needs
  `lambda:InvokeFunction`. It is anonymous, because no authorizer says whom it acts for.

A caller with `lambda:InvokeFunction` may send any event, so a member of another type counts as absent.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip.protocol.strict_json import compact_json

Event = Mapping[str, Any]

HTTP_API_LIMIT_MS: Final = 30_000
"""The maximum integration timeout ("Quotas for configuring and running an HTTP API")."""

REST_API_LIMIT_MS: Final = 29_000
"""The default timeout ("Quotas for configuring and running a REST API"). Events lack the actual one."""

ALB_LIMIT_MS: Final = 60_000
"""The default timeout ("Edit attributes for your Application Load Balancer"). Events lack the actual one."""

ALB_MAX_RESPONSE_BYTES: Final = 990_000
"""Limit of a response body. A load balancer allows 1 MB for the body, the headers and the envelope."""

CHALLENGE_HEADER: Final = "x-mcp-challenge"
"""A copy of WWW-Authenticate, which API Gateway may rename: an integration can restore the name."""

_IAM_MEMBERS: Final = {
    "accessKey": "accessKey",
    "accountId": "accountId",
    "callerId": "caller",
    "userArn": "userArn",
    "userId": "user",
}
"""Member of `authorizer.iam` in payload format 2.0 -> member of `requestContext.identity`."""


def parse_http_api(event: Event) -> HttpRequest:
    context = members(event, "requestContext")
    return _parse_payload_2_0(event, HTTP_API_LIMIT_MS, api_uri(context, text(context, "routeKey")))


def parse_function_url(event: Event) -> HttpRequest:
    # A function URL waits as long as the function runs.
    return _parse_payload_2_0(event, None, function_url(members(event, "requestContext")))


def _parse_payload_2_0(event: Event, limit_ms: int | None, endpoint_uri: str | None) -> HttpRequest:
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(members(context, "http"), "method"),
        headers=headers(event),
        body=body(event),
        authorizer=members(context, "authorizer"),
        source_limit_ms=limit_ms,
        path=without_stage(text(event, "rawPath"), text(context, "stage")),
        query=query(event),
        endpoint_uri=endpoint_uri,
    )


def parse_rest_api(event: Event) -> HttpRequest:
    # The path begins with the base path of a custom domain, and has no stage.
    resource = text(members(event, "requestContext"), "resourcePath")
    return _parse_payload_1_0(event, REST_API_LIMIT_MS, text(event, "path"), resource)


def parse_http_api_1_0(event: Event) -> HttpRequest:
    context = members(event, "requestContext")
    path = without_stage(text(event, "path"), text(context, "stage"))
    # `resourceId` is the key of the route. In AWS's example it is null, and `resourcePath` the caller's path.
    return _parse_payload_1_0(event, HTTP_API_LIMIT_MS, path, text(context, "resourceId"))


def _parse_payload_1_0(event: Event, limit_ms: int, path: str, route_key: str) -> HttpRequest:
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=multi_value_headers(event) or headers(event),  # `headers` has the last of several values
        body=body(event),
        authorizer=_authorizer(context),
        source_limit_ms=limit_ms,
        path=path,
        query=query(event),
        endpoint_uri=api_uri(context, route_key),
    )


def _authorizer(context: Event) -> Mapping[str, Any]:
    """Return the authorizer context in payload format 2.0. A Lambda authorizer's has a principalId."""
    found: dict[str, Any] = {}
    given = {name: value for name, value in members(context, "authorizer").items() if value is not None}
    if isinstance(given.get("claims"), Mapping) and "principalId" not in given:
        found["jwt"] = given
    elif given:
        found["lambda"] = given
    identity = members(context, "identity")
    if identity.get("userArn") is not None:
        found["iam"] = {name: identity.get(member) for name, member in _IAM_MEMBERS.items()}
        if identity.get("cognitoIdentityId") is not None:
            found["iam"]["cognitoIdentity"] = {"identityId": identity["cognitoIdentityId"]}
    return found


def parse_alb(event: Event) -> HttpRequest:
    # No authorizer context: `x-amzn-oidc-data` is a header, which a caller that bypasses the ALB can forge.
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=multi_value_headers(event) or headers(event),
        body=body(event),
        source_limit_ms=ALB_LIMIT_MS,
        path=text(event, "path"),
        query=query(event),
        max_response_bytes=ALB_MAX_RESPONSE_BYTES,
    )


def parse_message(event: Event) -> HttpRequest:
    """Return the request that an HTTP client would send. Its body is None for NaN or a lone surrogate."""
    try:
        return HttpRequest("POST", _mirrored_headers(event), compact_json(event), is_direct=True)
    except (ValueError, RecursionError):
        return HttpRequest("POST", {}, None)


def _mirrored_headers(event: Event) -> dict[str, str]:
    method, params = text(event, "method"), members(event, "params")
    values = {
        HEADER_METHOD: method,
        HEADER_NAME: params.get(NAME_PARAMETER.get(method, "")),
        HEADER_PROTOCOL_VERSION: members(params, "_meta").get(META_PROTOCOL_VERSION),
    }
    return {name: encode_header(value) for name, value in values.items() if isinstance(value, str)}


def format_response(response: HttpResponse) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body,
        "isBase64Encoded": False,
    }


def format_gateway_response(response: HttpResponse) -> dict[str, Any]:
    formatted = format_response(response)
    if (challenge := response.headers.get("www-authenticate")) is not None:
        formatted["headers"][CHALLENGE_HEADER] = challenge
    return formatted


def format_alb_response(response: HttpResponse) -> dict[str, Any]:
    from http import HTTPStatus  # 1 ms, for load balancers only

    description = f"{response.status} {HTTPStatus(response.status).phrase}"
    return {**format_response(response), "statusDescription": description}


def format_multi_value_response(response: HttpResponse) -> dict[str, Any]:
    formatted = format_alb_response(response)
    # Such a target group ignores `headers`.
    formatted["multiValueHeaders"] = {name: [value] for name, value in formatted.pop("headers").items()}
    return formatted


def format_message(response: HttpResponse) -> Any:
    return json.loads(response.body) if response.body else None  # a notification has no response


# -- the URI of the endpoint --------------------------------------------------------------------------------


DEFAULT: Final = "$default"
"""The stage and the route of HTTP APIs that have no path."""

_METADATA: Final = "/.well-known/oauth-protected-resource"
_WELL_KNOWN: Final = "/.well-known"
_SERVER_CARD: Final = "/server-card"


def api_uri(context: Event, route_key: str) -> str | None:
    """Return the URI of a route of an API; None if the caller might have chosen a part of it.

    The URI becomes the audience of tokens and states, so a caller that chose it could use a token that was
    issued for another server. Therefore:

    - The host has to be `<id>.execute-api.<Region>.amazonaws.com` with the event's `apiId`. `domainName` is
      what the caller wrote into Host: any subdomain of a custom domain with a wildcard, and more for private
      APIs. `wiring` checks that the Region is the function's. Partitions with other domains need the setting
      MCP_AUDIENCE.
    - The path is that of the stage and of the route up to its first variable, not that of the request.

    `context` is the event's `requestContext`. `route_key` is a path, behind a method or not, or `$default`.

    Sources: API Gateway developer guide, "Variables for access logging" (`domainName`, `resourcePath`),
    "Wildcard custom domain names", "Invoke a private API".
    """
    origin = _origin(context, "execute-api", "amazonaws.com")
    stage, path = text(context, "stage"), _fixed_path(route_key)
    if origin is None or path is None or not _is_stage(stage):
        return None
    return origin + ("" if stage == DEFAULT else f"/{stage}") + path


def function_url(context: Event) -> str | None:
    """Return the URI of a function URL; None if the caller might have chosen a part of it."""
    return _origin(context, "lambda-url", "on.aws")


def _origin(context: Event, service: str, suffix: str) -> str | None:
    """Return `https://<id>.<service>.<Region>.<suffix>` if this is the domain of the request."""
    api, domain = text(context, "apiId"), text(context, "domainName").lower()
    region = domain.removeprefix(f"{api}.{service}.").partition(".")[0]
    expected = f"{api}.{service}.{region}.{suffix}"
    return f"https://{expected}" if domain == expected and _is_label(api) and _is_label(region) else None


def _is_label(label: str) -> bool:
    return label.isascii() and label.replace("-", "").isalnum()


def _is_stage(stage: str) -> bool:
    return stage == DEFAULT or (stage.isascii() and stage.replace("-", "").replace("_", "").isalnum())


def _fixed_path(route_key: str) -> str | None:
    """Return the path of a route up to its first variable.

    A route of metadata (RFC 9728 §3.1) has the path of the described resource; with a variable, the caller
    chooses it. A route of a Server Card begins with the path of the endpoint.
    """
    path = route_key.rpartition(" ")[2]
    if path == DEFAULT:
        return ""
    fixed, variable, _ = path.partition("/{")
    if not path.startswith("/") or "{" in fixed:
        return None
    if f"{fixed}/".startswith(f"{_WELL_KNOWN}/"):
        described = fixed.removeprefix(_METADATA)
        if variable or described == fixed or described[:1] not in ("", "/"):
            return None
        fixed = described
    return fixed.removesuffix(_SERVER_CARD).rstrip("/")


# -- members of events --------------------------------------------------------------------------------------


def members(event: Event, name: str) -> Mapping[str, Any]:
    """Return a member that is an object; empty if there is none."""
    found = event.get(name)
    return found if isinstance(found, dict) else {}


def text(event: Event, name: str) -> str:
    """Return a member that is a string; empty if there is none."""
    found = event.get(name)
    return found if isinstance(found, str) else ""


def headers(event: Event) -> dict[str, str]:
    """Return `headers` by lower-case name."""
    return _join(members(event, "headers").items())


def multi_value_headers(event: Event) -> dict[str, str]:
    """Return `multiValueHeaders` by lower-case name, the values of one header joined."""
    lists = members(event, "multiValueHeaders").items()
    return _join((name, value) for name, values in lists if isinstance(values, list) for value in values)


def _join(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    # A proxy may have read another one of several values. Joined (RFC 9110 §5.3), they equal no method, name
    # or version, and are no bearer token.
    found: dict[str, str] = {}  # without a list for each name: every warm call comes here
    repeated: dict[str, list[str]] = {}
    for name, value in pairs:
        if isinstance(name, str) and isinstance(value, str):
            key = name.lower()
            if key in found:
                repeated.setdefault(key, [found[key]]).append(value)
            else:
                found[key] = value
    return found | {key: ", ".join(values) for key, values in repeated.items()} if repeated else found


def body(event: Event) -> str | bytes | None:
    """Return the body; None if `isBase64Encoded` is set and the body is not Base64."""
    content = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return content if isinstance(content, str) else ""
    try:
        return b64decode(content, validate=True)
    except (ValueError, TypeError):
        return None


def query(event: Event) -> dict[str, str]:
    """Return the parameters of the query that occur once. A load balancer leaves them encoded."""
    lists = members(event, "multiValueQueryStringParameters").items()
    pairs = [(name, values[0]) for name, values in lists if isinstance(values, list) and len(values) == 1]
    pairs = pairs if lists else list(members(event, "queryStringParameters").items())
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


_QUERIES: Final = frozenset({"rawQueryString", "queryStringParameters", "multiValueQueryStringParameters"})


def remove_query(event: dict[str, Any]) -> None:
    for name in _QUERIES & event.keys():
        event[name] = type(event[name])()


def without_stage(path: str, stage: str) -> str:
    """Remove the stage from a path. Every stage but `$default` is the first segment."""
    if not f"{path}/".startswith(f"/{stage}/"):
        return path
    return path[len(stage) + 1 :] or "/"
