"""Lambda function URLs: payload 2.0 on another domain, without a limit of its own.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.adapters import http_api
from mcp_roundtrip.http import HttpRequest


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request: it may take as long as the function may."""
    return http_api.request(event, source_limit_ms=None)


response = http_api.response
