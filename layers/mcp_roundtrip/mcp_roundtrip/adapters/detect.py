"""Which event source an event comes from: a table in which no event fits twice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from mcp_roundtrip.adapters.event import Source
from mcp_roundtrip.errors import McpRoundtripError


class UnknownEventSource(McpRoundtripError):
    """The event is of no source this package knows; the message says which there are, and what is nearest."""


def is_function_url(domain_name: Any) -> bool:
    """Whether the domain is `<url-id>.lambda-url.<Region>.on.aws`, which no HTTP API has."""
    labels = domain_name.split(".") if isinstance(domain_name, str) else []
    return labels[1:2] == ["lambda-url"] and labels[3:4] == ["on"]


_PROXIED: Final = {"path": str, "httpMethod": str}

SOURCES: Final[Mapping[str, Source]] = {
    "http_api": Source(
        "an API Gateway HTTP API request (payload 2.0)",
        has={"version": "2.0", "requestContext.http.method": str},
        # The events of Lambda authorizers look alike, and have a type.
        lacks={"type": object, "requestContext.domainName": is_function_url},
    ),
    "direct": Source("a bare JSON-RPC message", has={"jsonrpc": object}, lacks={"requestContext": object}),
    "function_url": Source(
        "a Lambda function URL request",
        has={
            "version": "2.0",
            "requestContext.http.method": str,
            "requestContext.domainName": is_function_url,
        },
    ),
    "rest_api": Source(
        "an API Gateway REST API request",
        has={**_PROXIED, "resource": str, "requestContext.identity": dict},
        lacks={"version": object, "type": object, "requestContext.elb": object},
    ),
    "http_api_1_0": Source(
        "an API Gateway HTTP API request (payload 1.0)",
        has={**_PROXIED, "version": "1.0", "requestContext.identity": dict},
        lacks={"type": object},
    ),
    "alb": Source(
        "an Application Load Balancer request",
        has={**_PROXIED, "requestContext.elb": dict, "headers": dict},
        lacks={"version": object, "multiValueHeaders": object},
    ),
    "alb_multi_value": Source(
        "an Application Load Balancer request with multi-value headers",
        has={**_PROXIED, "requestContext.elb": dict, "multiValueHeaders": dict},
        lacks={"version": object, "headers": object},
    ),
}
"""By the name of the adapter, the most frequent first."""


def detect(event: Any) -> ModuleType:
    """The adapter (`request`, `response`) of the source that sends such events. Raises UnknownEventSource."""
    if isinstance(event, dict):
        for name, source in SOURCES.items():
            if source.sends(event):
                return adapter(name)
    from mcp_roundtrip.adapters.nearest import explain  # for whoever has wired the function up

    raise UnknownEventSource(explain(event, [*SOURCES.values()]))


@cache
def adapter(name: str) -> ModuleType:
    """The adapter of this name; a cold start loads no other."""
    return import_module(f"mcp_roundtrip.adapters.{name}")
