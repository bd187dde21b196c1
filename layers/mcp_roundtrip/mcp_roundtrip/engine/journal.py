"""The journal of a flow: what has happened so far, its JSON form, and the position of one pass in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

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
        """Whether the tool's code created the value. False for an answer, and for a default in its place."""
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


class Entry(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One thing that happened. `message` and `form` are the fingerprint of an answer's question."""

    key: Annotated[str, Meta(min_length=1)]
    kind: Kind
    value: Any
    message: str | None = None
    form: str | None = None

    @property
    def fingerprint(self) -> Fingerprint | None:
        if self.message is None or self.form is None:
            return None
        return Fingerprint(self.message, self.form)

    def check(self) -> None:
        """Raise ValidationError for a value or a fingerprint that the kind does not have, or for none."""
        is_answer = self.kind is Kind.ANSWER
        if (self.message is None) is is_answer or (self.form is None) is is_answer:
            raise ValidationError("answers, and no other entries, have a fingerprint")
        if not is_answer and self.kind is not Kind.STEP:
            convert(self.value, _VALUES[self.kind])


_Count = Annotated[int, Meta(ge=0)]

_VALUES: Final[Mapping[Kind, Any]] = {
    Kind.DEFAULT: None,
    Kind.NOW: Annotated[int, Meta(ge=0, le=253_402_300_799_999)],  # the last millisecond of datetime
    Kind.WAKE: _Count,
    Kind.FAILED: _Count | None,  # None after the last attempt
    Kind.UUID: Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")],
    Kind.RANDOM: Annotated[float, Meta(ge=0, le=1)],
    Kind.LINK: str,
    Kind.BEGUN: str,
}
"""The types of the values in an entry. Those of answers and steps are validated where they are used."""

_MEMBERS: Final = {
    "flow_id": "id",
    "entries": "j",
    "outstanding": "q",
    "unused_responses": "h",
    "trailing_notifications": "r",
    "url_wait_rounds": "p",
    "trace": "t",
}
"""The names in the JSON form: they are short because every state has them."""


def keys_of_steps(entries: Iterable[Entry]) -> list[str]:
    """Return the keys of the steps that have finished."""
    return [entry.key for entry in entries if entry.kind is Kind.STEP]


class Journal(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename=_MEMBERS):
    """The record of a flow, which is one call over all of its rounds.

    - `flow_id` names the flow from the first state that its client received.
    - `outstanding` are the fingerprints of the last round's requests, by key.
    - `unused_responses` are responses to questions that the last pass did not reach. In a rolling deployment,
      another version of the code may reach them.
    - `trailing_notifications` counts the notifications sent after the last entry.
    - `url_wait_rounds` counts the rounds that only waited for URLs which the user had agreed to open.
    - `trace` is the span context (see `observing.opentelemetry_tracer`) of the first round's message, if that
      round was traced.
    """

    flow_id: Annotated[str, Meta(pattern=r"^[\x00-\x7f]+$")]
    entries: tuple[Entry, ...] = ()
    outstanding: Mapping[str, Fingerprint] = field(default_factory=dict)
    unused_responses: Mapping[str, Any] = field(default_factory=dict)
    trailing_notifications: _Count = 0
    url_wait_rounds: _Count = 0
    trace: Annotated[str, Meta(pattern=rf"^{TRACEPARENT}\Z")] | None = None

    @property
    def repeated_effects(self) -> list[str]:
        """The keys of the effects that a new call would repeat."""
        return [entry.key for entry in self.entries if entry.kind.is_nonrepeatable]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without members that have their defaults."""
        members = {"v": VERSION, **to_builtins(self)}
        if self.entries:
            members["j"] = [row if row[-1] is not None else row[:3] for row in members["j"]]
        return members

    @classmethod
    def from_json(cls, data: Any) -> Journal:
        """Read the JSON form. Raises StateRejected: `journal_version`, or `journal` for any other fault."""
        if not isinstance(data, dict) or type(data.get("v")) is not int or data["v"] != VERSION:
            raise StateRejected("journal_version")
        # An earlier version wrote `k`.
        members = {name: member for name, member in data.items() if name not in ("v", "k")}
        try:
            journal = convert(members, cls)
            for entry in journal.entries:
                entry.check()
        except (ValidationError, UnicodeEncodeError):  # of half of a surrogate pair
            raise StateRejected("journal") from None
        if len({entry.key for entry in journal.entries}) < len(journal.entries):
            raise StateRejected("journal")
        return journal


class History:
    """The journal of a flow during one pass, and which of its keys the tool's code has used.

    `has_effects`: whether an entry `is_nonrepeatable`.
    `has_new_entries`: whether this pass has added an entry.
    `unstored_steps`: the keys of steps that finished in this pass, and whose results could not be stored.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._entries = {entry.key: entry for entry in journal.entries}
        self._used_keys: set[str] = set()
        # An internal entry has the key of its step, "~" and a suffix.
        self._unused_keys = {entry.key.partition("~")[0] for entry in journal.entries}
        self.has_effects = any(entry.kind.is_nonrepeatable for entry in journal.entries)
        self.has_new_entries = False
        self.unstored_steps: list[str] = []
        self._notified = 0

    def use_key(self, key: str) -> bool:
        """Mark a key as used by the code; return False if it was used before in this pass."""
        if key in self._used_keys:
            return False
        self._used_keys.add(key)
        self._unused_keys.discard(key)
        return True

    def is_used(self, key: str) -> bool:
        return key in self._used_keys

    # -- entries ------------------------------------------------------------------------------------

    def entry(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def add(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self.has_effects = self.has_effects or entry.kind.is_nonrepeatable
        self.has_new_entries = True
        self._notified = 0

    def remove(self, key: str) -> None:
        """Remove an answer that no longer counts."""
        del self._entries[key]

    def is_last(self, key: str, besides: Collection[str]) -> bool:
        """Return whether no recorded entry follows that of `key`, except those of the keys in `besides`.

        The entries of this pass do not depend on the recorded answer, which is looked up only now.
        """
        for entry in reversed(self.journal.entries):
            if entry.key == key:
                return True
            is_beside = entry.key in besides or entry.key.partition("~")[0] == key
            if not is_beside and entry.key in self._entries:
                return False
        return False

    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def new_entries(self) -> list[Entry]:
        """Return the entries that this pass has added or replaced."""
        replayed = {entry.key: entry for entry in self.journal.entries}
        return [entry for key, entry in self._entries.items() if replayed.get(key) is not entry]

    def finished_steps(self) -> list[str]:
        return keys_of_steps(self.new_entries()) + self.unstored_steps

    def answers_before(self, prefix: str) -> list[list[Any]]:
        """Return the keys and answers used so far in the branch of this prefix and in those around it."""
        keys = sorted(key for key in self._used_keys if prefix.startswith(key[: key.rfind("/") + 1]))
        entries = (self._entries.get(key) for key in keys)
        return [[entry.key, entry.value] for entry in entries if entry and entry.kind is Kind.ANSWER]

    # -- notifications ------------------------------------------------------------------------------

    def should_notify(self) -> bool:
        """Count a notification, and return whether no earlier pass has sent it.

        While replaying, a pass sends none. After the last entry it skips `trailing_notifications`.
        """
        if not self.has_new_entries and self._unused_keys:
            return False
        self._notified += 1
        return self.has_new_entries or self._notified > self.journal.trailing_notifications

    # -- the end of the pass ------------------------------------------------------------------------

    def to_journal(self) -> Journal:
        return replace(self.journal, entries=tuple(self.entries()), trailing_notifications=self._notified)
