"""Find the event source of an event. No event matches two sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from mcp_roundtrip.adapters import event_formats
from mcp_roundtrip.adapters.event_formats import Event
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse

Matcher = str | type | Callable[[Any], bool]
"""A string to equal, a type, or a predicate. A member that is null matches none."""


class EventSource(Struct, frozen=True):
    """Translates between an event source and HTTP. Its events have and lack members, by dotted path."""

    description: str
    parse_request: Callable[[Event], HttpRequest]
    format_response: Callable[[HttpResponse], Any]
    has: Mapping[str, Matcher]
    lacks: Mapping[str, Matcher] = field(default_factory=dict)

    def matches(self, event: Event) -> bool:
        return not any(self.missing(event)) and not any(self.unexpected(event))

    def missing(self, event: Event) -> Iterable[str]:
        return (path for path, matcher in self.has.items() if not _matches(_member_at(event, path), matcher))

    def unexpected(self, event: Event) -> Iterable[str]:
        return (path for path, matcher in self.lacks.items() if _matches(_member_at(event, path), matcher))


def _matches(value: Any, matcher: Matcher) -> bool:
    if value is None:
        return False
    if isinstance(matcher, str):
        return bool(value == matcher)
    return isinstance(value, matcher) if isinstance(matcher, type) else matcher(value)


def _member_at(event: Event, path: str) -> Any:
    found: Any = event
    for name in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


class UnknownEventSource(McpRoundtripError):
    """The event is from no known source. The message lists the sources and the closest one."""


def is_function_url(domain_name: Any) -> bool:
    """Return whether a domain is a function URL's: `<url-id>.lambda-url.<Region>.on.aws`."""
    labels = domain_name.split(".") if isinstance(domain_name, str) else []
    return labels[1:2] == ["lambda-url"] and labels[3:4] == ["on"]


_PAYLOAD_1_0: Final = {"path": str, "httpMethod": str}

SOURCES: Final[Mapping[str, EventSource]] = {
    "http_api": EventSource(
        "an API Gateway HTTP API request (payload 2.0)",
        event_formats.parse_http_api,
        event_formats.format_gateway_response,
        has={"version": "2.0", "requestContext.http.method": str},
        # The event of a Lambda authorizer has a type, and is otherwise the same.
        lacks={"type": object, "requestContext.domainName": is_function_url},
    ),
    "jsonrpc_event": EventSource(
        "a JSON-RPC message",
        event_formats.parse_message,
        event_formats.format_message,
        has={"jsonrpc": object},
        lacks={"requestContext": object},
    ),
    "function_url": EventSource(
        "a Lambda function URL request",
        event_formats.parse_function_url,
        event_formats.format_response,
        has={
            "version": "2.0",
            "requestContext.http.method": str,
            "requestContext.domainName": is_function_url,
        },
    ),
    "rest_api": EventSource(
        "an API Gateway REST API request",
        event_formats.parse_rest_api,
        event_formats.format_gateway_response,
        has={**_PAYLOAD_1_0, "resource": str, "requestContext.identity": dict},
        lacks={"version": object, "type": object, "requestContext.elb": object},
    ),
    "http_api_1_0": EventSource(
        "an API Gateway HTTP API request (payload 1.0)",
        event_formats.parse_http_api_1_0,
        event_formats.format_gateway_response,
        has={**_PAYLOAD_1_0, "version": "1.0", "requestContext.identity": dict},
        lacks={"type": object},
    ),
    "alb": EventSource(
        "an Application Load Balancer request",
        event_formats.parse_alb,
        event_formats.format_alb_response,
        has={**_PAYLOAD_1_0, "requestContext.elb": dict, "headers": dict},
        lacks={"version": object, "multiValueHeaders": object},
    ),
    "alb_multi_value": EventSource(
        "an Application Load Balancer request with multi-value headers",
        event_formats.parse_alb,
        event_formats.format_multi_value_response,
        has={**_PAYLOAD_1_0, "requestContext.elb": dict, "multiValueHeaders": dict},
        lacks={"version": object, "headers": object},
    ),
}
"""Event sources by name, the most frequent one first."""


def detect(event: Any) -> EventSource:
    """Return the source of an event. Raises UnknownEventSource."""
    for source in SOURCES.values():
        if source.matches(event):
            return source
    raise UnknownEventSource(explain_mismatch(event))


def explain_mismatch(event: Any) -> str:
    """Return why an event is from no known source. The text quotes nothing from the event."""
    known = ", ".join(source.description for source in SOURCES.values())
    text = f"the event is from no known source; known are: {known}"
    if not isinstance(event, dict):
        return f"{text}. The event is not an object"
    closest = max(SOURCES.values(), key=lambda source: _similarity(event, source))
    if _similarity(event, closest)[0] <= 0:
        return text
    return f"{text}. It is most similar to {closest.description}, which has {_differences(event, closest)}"


def _similarity(event: Event, source: EventSource) -> tuple[int, int]:
    """Return a rank: by how many members match, then by how few do not."""
    missing, unexpected = len([*source.missing(event)]), len([*source.unexpected(event)])
    return len(source.has) - missing, -missing - unexpected


def _differences(event: Event, source: EventSource) -> str:
    expected = (
        f'{path} "{matcher}"' if isinstance(matcher := source.has[path], str) else path
        for path in source.missing(event)
    )
    return ", ".join([*expected, *(f"no {path}" for path in source.unexpected(event))])
