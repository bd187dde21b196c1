"""Application Load Balancer, from a target group with multi-value headers.

https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html#multi-value-headers
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.adapters import alb
from mcp_roundtrip.adapters.event import multi_value_headers
from mcp_roundtrip.http import HttpRequest, HttpResponse


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request."""
    return alb.of(event, multi_value_headers(event))


def response(answer: HttpResponse) -> dict[str, Any]:
    """The response: such a target group ignores `headers`."""
    lists = {name: [value] for name, value in answer.headers.items()}
    return {**alb.status(answer), "multiValueHeaders": lists}
