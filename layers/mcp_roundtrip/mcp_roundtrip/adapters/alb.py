"""Application Load Balancer, from a target group without multi-value headers.

https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.adapters.event import body, headers, text
from mcp_roundtrip.http import HttpRequest, HttpResponse

SOURCE_LIMIT_MS: Final = 60_000
"""The default idle timeout ("Edit attributes for your Application Load Balancer"): while the function works
its client receives nothing. Nothing in the event says what it is set to."""

MAX_RESPONSE_BYTES: Final = 990_000
"""Bytes of a response's body: a load balancer takes 1 MB, with the headers and what else is in it."""


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request. The load balancer has kept the last of several headers of one name."""
    return of(event, headers(event))


def of(event: Mapping[str, Any], given: Mapping[str, str]) -> HttpRequest:
    """The request with these headers.

    There is no authorizer context: `x-amzn-oidc-data` and the like are headers, which whoever reaches the
    function by another way can write.
    """
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=given,
        body=body(event),
        source_limit_ms=SOURCE_LIMIT_MS,
        path=text(event, "path"),
        max_response_bytes=MAX_RESPONSE_BYTES,
    )


def response(answer: HttpResponse) -> dict[str, Any]:
    """The response, with single-value headers as in the request."""
    return {**status(answer), "headers": dict(answer.headers)}


def status(answer: HttpResponse) -> dict[str, Any]:
    """The response without headers."""
    from http import HTTPStatus  # the other sources do without

    return {
        "statusCode": answer.status,
        "statusDescription": f"{answer.status} {HTTPStatus(answer.status).phrase}",
        "body": answer.body,
        "isBase64Encoded": False,
    }
