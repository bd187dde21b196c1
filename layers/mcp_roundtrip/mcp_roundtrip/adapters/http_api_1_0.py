"""API Gateway HTTP API, payload 1.0: a REST API's event with another limit, and a stage in its path.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_roundtrip.adapters import http_api, rest_api
from mcp_roundtrip.adapters.event import members, text, without_stage
from mcp_roundtrip.http import HttpRequest


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request."""
    found = rest_api.request(event, source_limit_ms=http_api.SOURCE_LIMIT_MS)
    return replace(found, path=without_stage(found.path, text(members(event, "requestContext"), "stage")))


response = http_api.response
