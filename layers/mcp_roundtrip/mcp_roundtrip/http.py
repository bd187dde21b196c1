"""What every adapter turns its event into, what every response starts from, and how large they may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MAX_BODY: Final = 4 * 1024 * 1024
"""Bytes of a request body, unless `MCP_MAX_BODY_BYTES` says otherwise; larger ones are refused with 413."""

MAX_JSON_VALUES: Final = 20_000
"""JSON values in a request body, unless `MCP_MAX_JSON_VALUES` says otherwise; more are refused with 413.

A value takes some 100 bytes in memory, and 500 for each thing that is wrong with it.
"""

LAMBDA_PAYLOAD: Final = 6 * 1024 * 1024
"""Bytes of an event, in which the body is a JSON string ("Lambda quotas")."""

MAX_RESPONSE: Final = 6_000_000
"""Bytes of a response's body: Lambda takes 6 MiB, with the headers and what else is in it."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request, whichever event source delivered it.

    `headers` has lower-case names; `body` is the raw body, None when the event's cannot be read;
    `authorizer` is the event source's authorizer context (nothing in it came from the caller unverified);
    `source_limit_ms` is how long the event source waits for an answer. `path` is the request's path as the
    event source reports it, without the stage where the event tells it apart; empty where there was no HTTP.
    `max_response` is how many bytes the response's body may have, as `payload_size` counts them.
    """

    method: str
    headers: Mapping[str, str]
    body: str | bytes | None
    authorizer: Mapping[str, Any] = field(default_factory=dict)
    source_limit_ms: int | None = None
    is_direct: bool = False
    """There was no HTTP: the headers are made from the body."""
    path: str = ""
    max_response: int = MAX_RESPONSE


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One HTTP response; `body` is JSON in ASCII, events of JSON, or empty.

    Many readers refuse a whole response for half of a surrogate pair in it: U+FFFD takes its place.
    `raw` is what another function has already put into the event source's own form: it leaves as it is.
    """

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Any = None

    def __post_init__(self) -> None:
        if "\\ud" in self.body:
            object.__setattr__(self, "body", _whole(self.body))


JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
EVENT_STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


def answered(response: str, events: Iterable[str], headers: Mapping[str, str]) -> HttpResponse:
    """200 with the response behind its events, if there are any and the request's headers accept a stream."""
    events = [*events, response]
    if len(events) == 1 or not accepts(headers.get("accept", ""), "text/event-stream"):
        return HttpResponse(200, response, JSON_HEADERS)
    return HttpResponse(200, "".join(map(_event, events)), EVENT_STREAM_HEADERS)


def _event(data: str) -> str:
    return f"data: {data}\n\n"


def accepts(accept: str, media_type: str) -> bool:
    """Whether the most specific media range of an Accept header for `media_type` has a weight above zero.

    RFC 9110 §12.5.1. A header that is absent or empty accepts nothing here: MCP's clients must send it.
    """
    ranges = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)  # the most specific one last
    matches = [(-1, 0.0)]
    for item in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in item.split(";"))
        if media_range in ranges:
            matches.append((ranges.index(media_range), _weight(parameters)))
    return max(matches)[1] > 0


def _weight(parameters: Iterable[str]) -> float:
    """The `q` of a media range; 1 where there is none, or none that can be read."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.rstrip() == "q":
            return float(value) if _QVALUE.fullmatch(value.lstrip()) else 1.0
    return 1.0


_QVALUE: Final = re.compile(r"[01](?:\.[0-9]{0,3})?", re.ASCII)


def _whole(body: str) -> str:
    parts: list[str] = []
    start = 0
    while (end := _READABLE.match(body, start).end()) < len(body):  # type: ignore[union-attr]  # it takes ""
        parts += body[start:end], "\\ufffd"
        start = end + len("\\udc80")
    return "".join(parts) + body[start:]


# Anything but a backslash, an escape that names no surrogate, and one that begins a whole pair.
_READABLE: Final = re.compile(r"(?:[^\\]++|\\(?:[^u]|u(?!d[89a-f])|ud[89ab]..\\ud[c-f]))*+")


def fits(body: str | bytes, limit: int) -> bool:
    """Whether a body has at most `limit` bytes; text is encoded only if its length leaves that open."""
    if isinstance(body, str) and limit // 4 < len(body) <= limit:
        return len(body.encode("utf-8", "surrogatepass")) <= limit
    return len(body) <= limit


def payload_size(body: str) -> int:
    """Bytes of a response's body as it stands in a Lambda response: ASCII, as a JSON string."""
    return len(body) + body.count('"') + body.count("\\") + body.count("\n")


def event_size(data: str) -> int:
    """As `payload_size`, of an event with this data."""
    return payload_size(data) + payload_size(_event(""))
