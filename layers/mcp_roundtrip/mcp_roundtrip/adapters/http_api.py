"""API Gateway HTTP API, payload 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.adapters.event import body, headers, members, text, without_stage
from mcp_roundtrip.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 30_000
"""An HTTP API waits no longer for its integration ("Quotas for configuring and running an HTTP API")."""


def request(event: Mapping[str, Any], *, source_limit_ms: int | None = SOURCE_LIMIT_MS) -> HttpRequest:
    """The request; its body is None when it is said to be Base64 and is not."""
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(members(context, "http"), "method"),
        headers=headers(event),
        body=body(event),
        authorizer=members(context, "authorizer"),
        source_limit_ms=source_limit_ms,
        path=without_stage(text(event, "rawPath"), text(context, "stage")),
    )


def response(answer: HttpResponse) -> dict[str, Any]:
    """The response, in the form that payloads 1.0 and 2.0 and REST APIs share."""
    return {
        "statusCode": answer.status,
        "headers": dict(answer.headers),
        "body": answer.body,
        "isBase64Encoded": False,
    }
