"""Events of a call from each event source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip_local.sample_events.messages import Event, post
from mcp_roundtrip_local.sample_events.sources import FORMATS
from support.messages import call

HTTP_SOURCES = ("http_api", *FORMATS)
GATEWAYS = ("http_api_1_0", "rest_api")
"""The sources with multi-value headers and a flat authorizer context."""


def sent_by(source: str, body: Mapping[str, Any], path: str = "/mcp") -> Event:
    """Return the event of a POST request."""
    sends: Callable[[Mapping[str, Any]], Event] = FORMATS.get(source, dict)
    return sends(post(path, body))


def with_header(event: Event, name: str, *values: str) -> Event:
    """Return the event with further values of a header. `headers` has the last one."""
    changed = dict(event)
    if "headers" in event:
        changed["headers"] = {**event["headers"], name: values[-1]}
    if "multiValueHeaders" in event:
        lists = event["multiValueHeaders"]
        changed["multiValueHeaders"] = {**lists, name: [*lists.get(name, []), *values]}
    return changed


def with_context(event: Event, **members: Any) -> Event:
    """Return the event with these members in its request context."""
    return {**event, "requestContext": {**event["requestContext"], **members}}


def any_call() -> Event:
    """Return a `tools/call` without arguments."""
    return call("whoami")
