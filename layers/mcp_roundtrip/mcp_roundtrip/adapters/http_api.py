"""API Gateway HTTP API payload 2.0, which Lambda function URLs share.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 30_000
"""An HTTP API waits no longer for its integration."""


def matches(event: Mapping[str, Any]) -> bool:
    """Whether the event is of this source."""
    context = event.get("requestContext")
    return (
        event.get("version") == "2.0"
        and isinstance(context, Mapping)
        and isinstance(context.get("http"), Mapping)
    )


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request; its body is None when it is said to be Base64 and is not."""
    context = event["requestContext"]
    headers, authorizer = event.get("headers"), context.get("authorizer")
    return HttpRequest(
        method=context["http"].get("method", ""),
        headers=_texts(headers) if isinstance(headers, Mapping) else {},
        body=_body(event),
        authorizer=authorizer if isinstance(authorizer, Mapping) else {},
        source_limit_ms=SOURCE_LIMIT_MS,
    )


def _texts(headers: Mapping[Any, Any]) -> dict[str, str]:
    """API Gateway sends text alone; whoever invokes the function directly may send anything."""
    return {
        name.lower(): value
        for name, value in headers.items()
        if isinstance(name, str) and isinstance(value, str)
    }


def _body(event: Mapping[str, Any]) -> str | bytes | None:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body if isinstance(body, str) else ""
    try:
        return b64decode(body, validate=True)
    except (ValueError, TypeError):
        return None


def response(answer: HttpResponse) -> dict[str, Any]:
    """The payload 2.0 response."""
    return {
        "statusCode": answer.status,
        "headers": dict(answer.headers),
        "body": answer.body,
        "isBase64Encoded": False,
    }
