"""What every adapter turns its event into, and what every response starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request, whichever event source delivered it.

    `headers` has lower-case names; `body` is the raw body, None when the event's cannot be read;
    `authorizer` is the event source's authorizer context (nothing in it came from the caller unverified);
    `source_limit_ms` is how long the event source waits for an answer.
    """

    method: str
    headers: Mapping[str, str]
    body: str | bytes | None
    authorizer: Mapping[str, Any] = field(default_factory=dict)
    source_limit_ms: int | None = None
    is_direct: bool = False
    """There was no HTTP: the headers are made from the body."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One HTTP response; `body` is text or empty.

    `raw` is what another function has already put into the event source's own form: it leaves as it is.
    """

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Any = None


JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
EVENT_STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
