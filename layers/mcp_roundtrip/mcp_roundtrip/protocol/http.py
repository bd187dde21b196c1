"""HTTP requests and responses, from any source: their size limits, and the statuses of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from mcp_roundtrip.errors import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolError
from mcp_roundtrip.protocol import jsonrpc

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Default limit of a request body (`MCP_MAX_BODY_BYTES`). A larger body is refused with 413."""

MAX_JSON_VALUES: Final = 20_000
"""Default limit of JSON values in a request body (`MCP_MAX_JSON_VALUES`). A larger body is refused with 413.

A value takes about 100 bytes of memory, and 500 for each validation error in it.
"""

MAX_EVENT_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit for an event, in which the body is a JSON string ("Lambda quotas")."""

MAX_RESPONSE_BYTES: Final = 6_000_000
"""Limit of a response body. Lambda allows 6 MiB for the body, the headers and the envelope."""

RESPONSE_OVERHEAD: Final = 16_384
"""Bytes of a response that are reserved for what surrounds a stored result, or the items of a list."""


class HttpRequest(Struct, frozen=True):
    """An HTTP request. `headers` has lower-case names; `body` is None if the event's body is malformed."""

    method: str
    headers: Mapping[str, str]
    body: str | bytes | None
    authorizer: Mapping[str, Any] = field(default_factory=dict)
    """The event's authorizer context, in which a client cannot write."""
    source_limit_ms: int | None = None
    """The time for which the event source waits for the response; None if it has no limit of its own."""
    is_direct: bool = False
    """Whether the event was a bare JSON-RPC message. The headers are then derived from the body."""
    path: str = ""
    """The path in the event, without the stage if the event names the stage."""
    query: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the query that occur once."""
    max_response_bytes: int = MAX_RESPONSE_BYTES
    """Limit of the response body, as `payload_size` counts."""
    endpoint_uri: str | None = None
    """The URI of the endpoint as AWS and the API's owner define it; None if the caller may have chosen it."""


class HttpResponse(Struct, frozen=True):
    """An HTTP response. `body` is ASCII: JSON, a stream of events, HTML, or empty.

    A lone surrogate in the body becomes U+FFFD, because many JSON parsers refuse the whole response for it.
    `raw` is the response of another function for the event source, and is returned unchanged.
    """

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Any = None

    def __post_init__(self) -> None:
        if "\\ud" in self.body:
            force_setattr(self, "body", _replace_lone_surrogates(self.body))


HTTP_STATUS: Final[Mapping[int, int]] = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    jsonrpc.HEADER_MISMATCH: 400,
    MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    jsonrpc.UNSUPPORTED_PROTOCOL_VERSION: 400,
    # Not 5xx: steps may have run, and proxies repeat such requests. Some clients do not read the body.
    jsonrpc.INTERNAL_ERROR: 200,
}
"""Error code -> HTTP status."""


def http_status(failure: ProtocolError) -> int:
    return failure.http_status or HTTP_STATUS.get(failure.code, 200)


JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
EVENT_STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


def build_response(message: str, events: Iterable[str], headers: Mapping[str, str]) -> HttpResponse:
    """Return 200 with a JSON-RPC message, behind its events if the client accepts an event stream."""
    events = [*events, message]
    if len(events) == 1 or not accepts(headers.get("accept", ""), "text/event-stream"):
        return HttpResponse(200, message, JSON_HEADERS)
    return HttpResponse(200, "".join(map(_format_event, events)), EVENT_STREAM_HEADERS)


def _format_event(data: str) -> str:
    return f"data: {data}\n\n"


def accepts(accept: str, media_type: str) -> bool:
    """Return whether an Accept header accepts a media type (RFC 9110 §12.5.1). An empty one accepts none."""
    ranges = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)  # the most specific one last
    matches = [(-1, 0.0)]
    for item in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in item.split(";"))
        if media_range in ranges:
            matches.append((ranges.index(media_range), _quality(parameters)))
    return max(matches)[1] > 0


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.rstrip() == "q":
            is_valid = re.fullmatch(r"[01](?:\.[0-9]{0,3})?", value.lstrip(), re.ASCII)
            return float(value) if is_valid else 1.0
    return 1.0


def _replace_lone_surrogates(json_text: str) -> str:
    return re.sub(_UP_TO_LONE_SURROGATE, lambda found: found[1] + ("\\ufffd" if found[2] else ""), json_text)


# Other characters, escapes that name no surrogate, and the first escapes of surrogate pairs; then a lone one.
_UP_TO_LONE_SURROGATE: Final = r"((?:[^\\]++|\\(?:[^u]|u(?!d[89a-f])|ud[89ab]..\\ud[c-f]))*+)(\\u....|\Z)"


def body_within_limit(body: str | bytes, max_bytes: int) -> bool:
    encoded = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return len(encoded) <= max_bytes


def payload_size(body: str) -> int:
    """Return the bytes that an ASCII body takes as a JSON string in a Lambda response."""
    return len(body) + body.count('"') + body.count("\\") + body.count("\n")


def event_size(data: str) -> int:
    """Return the bytes of a server-sent event with this data, as `payload_size` counts."""
    return payload_size(data) + payload_size(_format_event(""))
