"""What has happened in a call so far, in the order it happened, as it travels inside `requestState`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from mcp_roundtrip.errors import StateRejected

VERSION: Final = 1
"""Of the JSON form below: a state of another version is refused, never guessed at."""


class Kind(StrEnum):
    """What an entry remembers. The values are short because they travel."""

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
        """Whether the entry came from running code, not from the client."""
        return self not in (Kind.ANSWER, Kind.DEFAULT)

    @property
    def is_once(self) -> bool:
        """Whether a run without the entry would not be the same; a link is just signed again."""
        return self.is_effect and self is not Kind.LINK


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Digests of a question: its message, and everything else about it (method, mode, schema, ...)."""

    message: str
    form: str

    def changes(self, other: Fingerprint) -> str:
        """Which of the two differ, in words."""
        parts = [
            name
            for name, differs in (
                ("message", self.message != other.message),
                ("form (method or parameters)", self.form != other.form),
            )
            if differs
        ]
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened; `fingerprint` is the question an answer was given to."""

    key: str
    kind: Kind
    value: Any = None
    fingerprint: Fingerprint | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """A call's past.

    `run_id` names the call from the first state its client received. `asked` are the questions of the last
    round by key. `held` are answers to questions that the last pass did not reach: another build, in a
    rolling upgrade, may reach them again. `reported` counts the reports made since the last entry.
    """

    run_id: str
    entries: tuple[Entry, ...] = ()
    asked: Mapping[str, Fingerprint] = field(default_factory=lambda: MappingProxyType({}))
    held: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    reported: int = 0

    def to_json(self) -> dict[str, Any]:
        """The JSON form, without the members that are empty."""
        members = {
            "v": VERSION,
            "id": self.run_id,
            "j": [_entry_to_json(entry) for entry in self.entries],
            "q": {key: [asked.message, asked.form] for key, asked in self.asked.items()},
            "h": dict(self.held),
            "r": self.reported,
        }
        return {name: member for name, member in members.items() if member}

    @classmethod
    def from_json(cls, data: Any) -> Journal:
        """Read the JSON form; StateRejected when it is another version's."""
        if not isinstance(data, dict) or data.get("v") != VERSION:
            raise StateRejected("journal_version")
        return cls(
            run_id=data["id"],
            entries=tuple(_entry_from_json(*row) for row in data.get("j", ())),
            asked={key: Fingerprint(*digests) for key, digests in data.get("q", {}).items()},
            held=data.get("h", {}),
            reported=data.get("r", 0),
        )


def _entry_to_json(entry: Entry) -> list[Any]:
    if entry.fingerprint is None:
        return [entry.key, entry.kind.value, entry.value]
    return [entry.key, entry.kind.value, entry.value, entry.fingerprint.message, entry.fingerprint.form]


def _entry_from_json(key: str, kind: str, value: Any, *fingerprint: str) -> Entry:
    return Entry(key, Kind(kind), value, Fingerprint(*fingerprint) if fingerprint else None)
