"""Trace context in `_meta` (SEP-414; W3C Trace Context 1, W3C Baggage).

The trace context is not verified and may be absent. A malformed member is treated as absent, not as an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.constants import META_BAGGAGE, META_TRACEPARENT, META_TRACESTATE

MAX_LENGTH: Final = 8_192
"""Limit of a list in characters: what every participant must propagate (W3C Baggage, "Limits")."""

MAX_STATES: Final = 32
"""Limit of the members of a tracestate (W3C Trace Context 3.3.1.1)."""

MAX_LOG_LENGTH: Final = 512

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL
)

_TRACESTATE_MEMBER: Final = re.compile(
    r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)

# The quantifiers are possessive, because backtracking over many blanks would take quadratic time.
_KEY: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = r"[ \t]*+=[ \t]*+[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*+"
_BAGGAGE_MEMBER: Final = re.compile(rf"{_KEY}{_VALUE}(?:[ \t]*+;[ \t]*+{_KEY}(?:{_VALUE})?)*+")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace context of a request. A member that is absent or malformed is None.

    `traceparent` has the form of version 00 for every received version. With `tracestate` and `baggage` it
    can be sent to the services that a tool calls.
    """

    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> TraceContext:
        """Parse the trace context in a request's `_meta`. Raises nothing."""
        traceparent = _traceparent(meta.get(META_TRACEPARENT))
        return cls(
            traceparent,
            None if traceparent is None else _list(meta.get(META_TRACESTATE), _TRACESTATE_MEMBER, MAX_STATES),
            _list(meta.get(META_BAGGAGE), _BAGGAGE_MEMBER),
        )

    @property
    def trace_id(self) -> str | None:
        """The trace id: 32 hexadecimal digits, lower case."""
        return None if self.traceparent is None else self.traceparent[3:35]

    def log_fields(self) -> dict[str, str]:
        """Return the members that are present, cut to MAX_LOG_LENGTH."""
        members = {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "tracestate": self.tracestate,
            "baggage": self.baggage,
        }
        return {name: member[:MAX_LOG_LENGTH] for name, member in members.items() if member is not None}

    @property
    def span_id(self) -> str | None:
        """The id of the caller's span (W3C: parent-id): 16 hexadecimal digits, lower case."""
        return None if self.traceparent is None else self.traceparent[36:52]


def _traceparent(value: Any) -> str | None:
    # A later version may have more fields and other flags ("Versioning of traceparent").
    found = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    version, ids, flags, more = found.groups()
    if version == "00":
        return value if more is None else None
    return f"00-{ids}-{int(flags, 16) & 1:02x}"


def _list(value: Any, member: re.Pattern[str], most: int = MAX_LENGTH) -> str | None:
    """Return a list without blanks and empty members; None for too many or malformed members."""
    if not isinstance(value, str) or len(value) > MAX_LENGTH:
        return None
    members = [each.strip(" \t") for each in value.split(",")]
    members = [each for each in members if each]
    if len(members) > most or not all(map(member.fullmatch, members)):
        return None
    return ",".join(members) or None
