"""Application Load Balancers, from target groups with and without multi-value headers.

https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from mcp_roundtrip.adapters.event import (
    Adapter,
    Event,
    body,
    encoded_query,
    headers,
    multi_value_headers,
    text,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 60_000
"""The default idle timeout ("Edit attributes for your Application Load Balancer").

The client receives nothing while the function runs. The event does not contain the configured value.
"""

MAX_RESPONSE_BYTES: Final = 990_000
"""Limit of a response body. A load balancer allows 1 MB for the body, the headers and the envelope."""


def _parse_request(event: Event, headers: Mapping[str, str]) -> HttpRequest:
    # There is no authorizer context: `x-amzn-oidc-data` and its like are headers, which any caller that
    # reaches the function in another way can forge.
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=headers,
        body=body(event),
        source_limit_ms=SOURCE_LIMIT_MS,
        path=text(event, "path"),
        query=encoded_query(event),
        max_response_bytes=MAX_RESPONSE_BYTES,
    )


def _format_status_and_body(response: HttpResponse) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "statusDescription": f"{response.status} {HTTPStatus(response.status).phrase}",
        "body": response.body,
        "isBase64Encoded": False,
    }


def _format_response(response: HttpResponse) -> dict[str, Any]:
    return {**_format_status_and_body(response), "headers": dict(response.headers)}


def _format_multi_value_response(response: HttpResponse) -> dict[str, Any]:
    # Such a target group ignores `headers`.
    lists = {name: [value] for name, value in response.headers.items()}
    return {**_format_status_and_body(response), "multiValueHeaders": lists}


ADAPTERS: Final = {
    "alb": Adapter(lambda event: _parse_request(event, headers(event)), _format_response),
    "alb_multi_value": Adapter(
        lambda event: _parse_request(event, multi_value_headers(event)), _format_multi_value_response
    ),
}
