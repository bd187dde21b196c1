"""API Gateway HTTP APIs with payload format 2.0, and Lambda function URLs, which use the same format.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

from __future__ import annotations

from typing import Any, Final

from mcp_roundtrip.adapters.endpoint_uri import api_uri, function_url
from mcp_roundtrip.adapters.event import Adapter, Event, body, headers, members, text, without_stage
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 30_000
"""The maximum integration timeout ("Quotas for configuring and running an HTTP API")."""

CHALLENGE_HEADER: Final = "x-mcp-challenge"
"""The value of WWW-Authenticate in responses to API Gateway."""


def _parse_http_api(event: Event) -> HttpRequest:
    context = members(event, "requestContext")
    return _parse_request(event, SOURCE_LIMIT_MS, api_uri(context, text(context, "routeKey")))


def _parse_function_url(event: Event) -> HttpRequest:
    # A function URL waits as long as the function runs.
    return _parse_request(event, None, function_url(members(event, "requestContext")))


def _parse_request(event: Event, source_limit_ms: int | None, endpoint_uri: str | None) -> HttpRequest:
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(members(context, "http"), "method"),
        headers=headers(event),
        body=body(event),
        authorizer=members(context, "authorizer"),
        source_limit_ms=source_limit_ms,
        path=without_stage(text(event, "rawPath"), text(context, "stage")),
        query=text(event, "rawQueryString"),
        endpoint_uri=endpoint_uri,
    )


def format_gateway_response(response: HttpResponse) -> dict[str, Any]:
    """Format a response for HTTP APIs and REST APIs.

    API Gateway may rename WWW-Authenticate, so a second header has the same challenge: an integration can map
    it to the name that clients read.
    """
    formatted = _format_response(response)
    if (challenge := response.headers.get("www-authenticate")) is not None:
        formatted["headers"][CHALLENGE_HEADER] = challenge
    return formatted


def _format_response(response: HttpResponse) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body,
        "isBase64Encoded": False,
    }


ADAPTERS: Final = {
    "http_api": Adapter(_parse_http_api, format_gateway_response),
    "function_url": Adapter(_parse_function_url, _format_response),
}
