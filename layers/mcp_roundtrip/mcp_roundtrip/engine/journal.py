"""The journal of a flow: what has happened so far, in order, and its JSON form in `requestState`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from mcp_roundtrip.errors import StateRejected

VERSION: Final = 1
"""The version of the JSON form. A state with another version is refused."""


class Kind(StrEnum):
    """The kind of an entry. The values are short because they are sent in every state."""

    ANSWER = "a"
    DEFAULT = "d"
    STEP = "s"
    NOW = "n"
    UUID = "u"
    RANDOM = "r"
    LINK = "l"
    WAKE = "w"
    BEGUN = "b"
    FAILED = "f"

    @property
    def is_effect(self) -> bool:
        """Whether the tool's code created the entry, not the client."""
        return self not in (Kind.ANSWER, Kind.DEFAULT)

    @property
    def is_nonrepeatable(self) -> bool:
        """Whether running the code again would not reproduce the entry. A link is signed again."""
        return self.is_effect and self is not Kind.LINK


class Fingerprint(Struct, frozen=True):
    """Digests of a question: its message, and everything else about it (method, mode, schema, ...)."""

    message: str
    form: str

    def describe_changes(self, other: Fingerprint) -> str:
        """Return the names of the parts that differ, for an error message; "" if none does."""
        parts = [
            name
            for name, differs in (
                ("message", self.message != other.message),
                ("form (method or parameters)", self.form != other.form),
            )
            if differs
        ]
        return " and ".join(parts)


class Entry(Struct, frozen=True):
    """One thing that happened. An answer has the fingerprint of its question."""

    key: str
    kind: Kind
    value: Any = None
    fingerprint: Fingerprint | None = None


class Journal(Struct, frozen=True):
    """The record of a flow, which is one call over all of its rounds.

    - `flow_id` names the flow from the first state that its client received.
    - `outstanding` are the fingerprints of the last round's requests, by key.
    - `unused_responses` are responses to questions that the last pass did not reach. In a rolling deployment,
      another version of the code may reach them.
    - `trailing_notifications` counts the notifications sent after the last entry.
    - `url_wait_rounds` counts the rounds that only waited for URLs which the user had agreed to open.
    - `trace` is the span context of the first round's message (see `tracing`), if that round was traced.
    """

    flow_id: str
    entries: tuple[Entry, ...] = ()
    outstanding: Mapping[str, Fingerprint] = field(default_factory=lambda: MappingProxyType({}))
    unused_responses: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    trailing_notifications: int = 0
    url_wait_rounds: int = 0
    trace: str | None = None

    def responses_for(self, received: Mapping[str, Any]) -> dict[str, Any]:
        """Return the received responses, and the unused ones of earlier rounds, which count before them."""
        return {**received, **self.unused_responses}

    @property
    def lost_effects(self) -> list[str]:
        """The keys of the effects that a new call would repeat."""
        return [entry.key for entry in self.entries if entry.kind.is_nonrepeatable]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without empty members."""
        members = {
            "v": VERSION,
            "id": self.flow_id,
            "j": [_entry_to_json(entry) for entry in self.entries],
            "q": {key: [each.message, each.form] for key, each in self.outstanding.items()},
            "h": dict(self.unused_responses),
            "r": self.trailing_notifications,
            "p": self.url_wait_rounds,
            "t": self.trace,
        }
        return {name: member for name, member in members.items() if member}

    @classmethod
    def from_json(cls, data: Any) -> Journal:
        """Read the JSON form. Raises StateRejected: `journal_version`, or `journal` for any other fault."""
        if not isinstance(data, dict) or type(data.get("v")) is not int or data["v"] != VERSION:
            raise StateRejected("journal_version")
        flow_id, rows, outstanding = data.get("id"), data.get("j", []), data.get("q", {})
        unused, notified, waits = data.get("h", {}), data.get("r", 0), data.get("p", 0)
        if not (type(flow_id) is str and flow_id and flow_id.isascii() and data.keys() <= _MEMBERS):
            raise StateRejected("journal")
        if not (type(rows) is list and type(outstanding) is dict and type(unused) is dict):
            raise StateRejected("journal")
        if type(notified) is not int or notified < 0 or type(waits) is not int or waits < 0:
            raise StateRejected("journal")
        if "t" in data:
            _check_trace(data["t"])
        entries = tuple(map(_entry_from_json, rows))
        if len({entry.key for entry in entries}) < len(entries):
            raise StateRejected("journal")
        fingerprints = {key: _fingerprint(digests) for key, digests in outstanding.items()}
        return cls(flow_id, entries, fingerprints, unused, notified, waits, data.get("t"))


def _check_trace(trace: Any) -> None:
    from mcp_roundtrip.observing.tracing import is_traceparent  # most deployments trace nothing

    if not is_traceparent(trace):
        raise StateRejected("journal")


_MEMBERS: Final = frozenset({"v", "id", "j", "q", "h", "r", "p", "t", "k"})
"""The members of the JSON form. "k" means nothing: an earlier version wrote it."""

_MAX_EPOCH_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: the limit of datetime."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _is_epoch_ms(value: Any) -> bool:
    return type(value) is int and value >= 0


_IS_VALUE: Final[Mapping[Kind, Callable[[Any], bool]]] = {
    Kind.DEFAULT: lambda value: value is None,
    Kind.NOW: lambda value: _is_epoch_ms(value) and value <= _MAX_EPOCH_MS,
    Kind.WAKE: _is_epoch_ms,
    Kind.FAILED: _is_epoch_ms,
    Kind.UUID: lambda value: isinstance(value, str) and _UUID.fullmatch(value) is not None,
    Kind.RANDOM: lambda value: type(value) in (int, float) and 0 <= value <= 1,
    Kind.LINK: lambda value: isinstance(value, str),
    Kind.BEGUN: lambda value: isinstance(value, str),
}
"""Checks of an entry's value by its kind. Answers and step results are validated where they are used."""


def _entry_to_json(entry: Entry) -> list[Any]:
    if entry.fingerprint is None:
        return [entry.key, entry.kind.value, entry.value]
    return [entry.key, entry.kind.value, entry.value, entry.fingerprint.message, entry.fingerprint.form]


_KINDS: Final[Mapping[str, Kind]] = {kind.value: kind for kind in Kind}


def _entry_from_json(row: Any) -> Entry:
    # No pattern matching, which is slower: this runs for every replayed step.
    if type(row) is not list or not 3 <= len(row) <= 5 or type(row[0]) is not str or type(row[1]) is not str:
        raise StateRejected("journal")
    key, kind, value = row[0], _KINDS.get(row[1]), row[2]
    # Answers, and no other entries, have a fingerprint.
    if not key or kind is None or (kind is Kind.ANSWER) is (len(row) == 3):
        raise StateRejected("journal")
    if kind in _IS_VALUE and not _IS_VALUE[kind](value):
        raise StateRejected("journal")
    return Entry(key, kind, value, _fingerprint(row[3:]) if len(row) > 3 else None)


def _fingerprint(digests: Any) -> Fingerprint:
    if type(digests) is list and len(digests) == 2 and type(digests[0]) is type(digests[1]) is str:
        return Fingerprint(*digests)
    raise StateRejected("journal")
