"""Trace context in `_meta`: which trace a request belongs to (SEP-414; W3C Trace Context 1, W3C Baggage).

What a caller sends is a hint: nothing malformed is an error, it is as if it had not been sent, and so the
receiver begins a trace of its own. Nobody has verified who wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.methods import META_BAGGAGE, META_TRACELINK, META_TRACEPARENT, META_TRACESTATE

MAX_TRACESTATE: Final = 512
"""Characters that are kept at most: what everybody has to propagate ("tracestate Limits")."""

MAX_TRACESTATE_MEMBERS: Final = 32

MAX_BAGGAGE: Final = 8_192
"""Characters that are kept at most, and `MAX_BAGGAGE_MEMBERS`: as above (W3C Baggage, "Limits")."""

MAX_BAGGAGE_MEMBERS: Final = 64

_OWS: Final = " \t"

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL
)

_TRACESTATE_MEMBER: Final = re.compile(
    r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)

# Possessive quantifiers: with others, an entry of many blanks would take time without end to be refused.
_KEY: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_VALUE: Final = r"[ \t]*+=[ \t]*+[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*+"
_BAGGAGE_MEMBER: Final = re.compile(rf"{_KEY}{_VALUE}(?:[ \t]*+;[ \t]*+{_KEY}(?:{_VALUE})?)*+")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace context of one request; a member that was absent or malformed is None.

    `traceparent` is in the form of version 00, whatever version was received: it can be sent on, with
    `tracestate` and `baggage`, to the services a tool calls. `tracelink` is the traceparent of another span
    that this request goes on from without being its child: that of the first round, in a later one.
    """

    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None
    tracelink: str | None = None

    @classmethod
    def read(cls, meta: Mapping[str, Any]) -> TraceContext:
        """That of a request with this `_meta`. Raises nothing."""
        traceparent = _traceparent(meta.get(META_TRACEPARENT))
        return cls(
            traceparent,
            None if traceparent is None else _tracestate(meta.get(META_TRACESTATE)),
            _baggage(meta.get(META_BAGGAGE)),
            _traceparent(meta.get(META_TRACELINK, meta.get("tracelink"))),
        )

    @property
    def trace_id(self) -> str | None:
        """The trace: 32 hexadecimal digits, lower case."""
        return None if self.traceparent is None else self.traceparent[3:35]

    def log_fields(self) -> dict[str, str]:
        """What the log says of it, of what there is: baggage in so far as it is short."""
        members = {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "tracestate": self.tracestate,
            "tracelink": self.tracelink,
            "baggage": None if self.baggage is None else _joined(self.baggage.split(","), MAX_TRACESTATE),
        }
        return {name: member for name, member in members.items() if member is not None}

    @property
    def span_id(self) -> str | None:
        """The caller's span (W3C: parent-id): 16 hexadecimal digits, lower case."""
        return None if self.traceparent is None else self.traceparent[36:52]


def _traceparent(value: Any) -> str | None:
    """Later versions may have more fields, and flags that mean nothing here ("Versioning of traceparent")."""
    found = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    version, ids, flags, more = found.groups()
    if version == "00":
        return value if more is None else None
    return f"00-{ids}-{int(flags, 16) & 1:02x}"


def _tracestate(value: Any) -> str | None:
    """All of it counts for nothing when one member is malformed: their order has a meaning."""
    if not isinstance(value, str) or value.count(",") >= MAX_TRACESTATE_MEMBERS:
        return None
    members = [member.strip(_OWS) for member in value.split(",")]
    if not all(_TRACESTATE_MEMBER.fullmatch(member) for member in members if member):
        return None
    whole = ",".join(filter(None, members))
    if len(whole) <= MAX_TRACESTATE:
        return whole or None
    return _joined([member for member in members if 0 < len(member) <= 128], MAX_TRACESTATE)


def _baggage(value: Any) -> str | None:
    """Its members stand alone, so a malformed one takes no other with it."""
    if not isinstance(value, str):
        return None
    # What is left after that many members still has its commas, so it is malformed.
    members = [member.strip(_OWS) for member in value.split(",", MAX_BAGGAGE_MEMBERS)]
    return _joined([member for member in members if _BAGGAGE_MEMBER.fullmatch(member)], MAX_BAGGAGE)


def _joined(members: list[str], limit: int) -> str | None:
    """As many of the first members as fit into `limit` characters."""
    joined = ",".join(members)
    while len(joined) > limit:
        joined = joined.rpartition(",")[0]
    return joined or None
