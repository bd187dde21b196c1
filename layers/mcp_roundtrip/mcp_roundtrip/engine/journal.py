"""The journal of a flow: what has happened so far, in order, and its JSON form in `requestState`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, field

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.protocol.constants import TRACEPARENT

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


class Fingerprint(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Digests of a question: its message, and everything else about it (method, mode, schema, ...)."""

    message: str
    form: str

    def describe_changes(self, other: Fingerprint) -> str:
        """Return the names of the parts that differ, for an error message; "" if none does."""
        message = ["message"] if self.message != other.message else []
        form = ["form (method or parameters)"] if self.form != other.form else []
        return " and ".join(message + form)


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
    - `trace` is the span context of the first round's message (see `observing.tracer`), if that round was
      traced.
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
        try:
            form = convert(data, _JournalForm)
        except (ValidationError, UnicodeEncodeError):  # of half of a surrogate pair
            raise StateRejected("journal") from None
        entries = tuple(map(_entry, form.j))
        if len({entry.key for entry in entries}) < len(entries):
            raise StateRejected("journal")
        return cls(form.id, entries, form.q, form.h, form.r, form.p, None if form.t is UNSET else form.t)


class _Row(Struct, array_like=True, forbid_unknown_fields=True):
    """The JSON form of an entry. Answers, and no other entries, have a fingerprint."""

    key: Annotated[str, Meta(min_length=1)]
    kind: Kind
    value: Any
    message: str | UnsetType = UNSET
    form: str | UnsetType = UNSET


_Count = Annotated[int, Meta(ge=0)]


class _JournalForm(Struct, forbid_unknown_fields=True):
    """The JSON form of a journal: its names are short because every state has them.

    `k` means nothing: an earlier version wrote it.
    """

    v: int
    id: Annotated[str, Meta(pattern=r"^[\x00-\x7f]+$")]
    j: list[_Row] = []
    q: dict[str, Fingerprint] = {}
    h: dict[str, Any] = {}
    r: _Count = 0
    p: _Count = 0
    t: Annotated[str, Meta(pattern=rf"^{TRACEPARENT}\Z")] | UnsetType = UNSET
    k: Any = None


_MAX_EPOCH_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: the limit of datetime."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_IS_VALUE: Final[Mapping[Kind, Callable[[Any], bool]]] = {
    Kind.DEFAULT: lambda value: value is None,
    Kind.NOW: lambda value: type(value) is int and 0 <= value <= _MAX_EPOCH_MS,
    Kind.WAKE: lambda value: type(value) is int and value >= 0,
    Kind.FAILED: lambda value: type(value) is int and value >= 0,
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


def _entry(row: _Row) -> Entry:
    is_value = _IS_VALUE.get(row.kind)
    if is_value is not None and not is_value(row.value):
        raise StateRejected("journal")
    if row.kind is Kind.ANSWER and row.message is not UNSET and row.form is not UNSET:
        return Entry(row.key, row.kind, row.value, Fingerprint(row.message, row.form))
    if row.kind is Kind.ANSWER or row.message is not UNSET:
        raise StateRejected("journal")
    return Entry(row.key, row.kind, row.value)
