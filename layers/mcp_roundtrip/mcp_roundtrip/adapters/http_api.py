"""API Gateway HTTP APIs with payload format 2.0, and Lambda function URLs, which use the same format.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from mcp_roundtrip.adapters.event import Adapter, Event, body, headers, members, text, without_stage
from mcp_roundtrip.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 30_000
"""The maximum integration timeout ("Quotas for configuring and running an HTTP API")."""


def _parse_request(event: Event, *, source_limit_ms: int | None) -> HttpRequest:
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(members(context, "http"), "method"),
        headers=headers(event),
        body=body(event),
        authorizer=members(context, "authorizer"),
        source_limit_ms=source_limit_ms,
        path=without_stage(text(event, "rawPath"), text(context, "stage")),
        query=text(event, "rawQueryString"),
    )


def format_response(response: HttpResponse) -> dict[str, Any]:
    """Format a response for HTTP APIs, REST APIs and function URLs."""
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body,
        "isBase64Encoded": False,
    }


ADAPTERS: Final = {
    "http_api": Adapter(partial(_parse_request, source_limit_ms=SOURCE_LIMIT_MS), format_response),
    # A function URL waits as long as the function runs.
    "function_url": Adapter(partial(_parse_request, source_limit_ms=None), format_response),
}
