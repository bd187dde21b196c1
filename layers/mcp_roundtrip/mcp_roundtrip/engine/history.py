"""The entries that a pass has: those it replays, and those it adds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind


class History:
    """The journal of a flow during one pass, and which of its keys the tool's code has used.

    `round_has_entries`: whether this pass, or an earlier one of the same round, has added an entry.
    """

    __slots__ = (
        "_entries", "_has_effects", "_has_new_entries", "_notified", "_unused_keys", "_used_keys", "journal",
        "round_has_entries",
    )  # fmt: skip

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._entries = {entry.key: entry for entry in journal.entries}
        self._used_keys: set[str] = set()
        # Kept up to date, because a pass asks for each notification and each answer.
        self._unused_keys: set[str] | None = None
        self._has_effects = any(entry.kind.is_nonrepeatable for entry in journal.entries)
        self._has_new_entries = False
        self.round_has_entries = False
        self._notified = 0

    @property
    def has_effects(self) -> bool:
        """Whether an entry is of a kind that running the code again would not reproduce."""
        return self._has_effects

    def use_key(self, key: str) -> bool:
        """Mark a key as used by the code; return False if it was used before in this pass."""
        if key in self._used_keys:
            return False
        self._used_keys.add(key)
        if self._unused_keys is not None:
            self._unused_keys.discard(key)
        return True

    def is_used(self, key: str) -> bool:
        """Return whether the code has used this key in this pass."""
        return key in self._used_keys

    # -- entries ------------------------------------------------------------------------------------

    def entry(self, key: str) -> Entry | None:
        """Return the entry of this key."""
        return self._entries.get(key)

    def add(self, entry: Entry) -> None:
        """Add an entry for what has just happened."""
        self._entries[entry.key] = entry
        self._has_effects = self._has_effects or entry.kind.is_nonrepeatable
        self._has_new_entries = self.round_has_entries = True
        self._notified = 0

    def remove(self, key: str) -> None:
        """Remove an answer that no longer counts."""
        del self._entries[key]

    def is_last(self, key: str, besides: Collection[str]) -> bool:
        """Return whether no entry follows that of `key`, except those of the keys in `besides`."""
        for later in reversed(self._entries):
            if later == key:
                return True
            if later not in besides and later.partition("~")[0] != key:
                return False
        return False

    def values(self) -> list[Any]:
        """Return the values of all entries, as JSON data."""
        return [entry.value for entry in self._entries.values()]

    def new_entries(self) -> list[Entry]:
        """Return the entries that this pass has added, and those that it has replaced."""
        replayed = {entry.key: entry for entry in self.journal.entries}
        return [entry for key, entry in self._entries.items() if replayed.get(key) is not entry]

    def answers_before(self, prefix: str) -> list[list[Any]]:
        """Return the keys and answers used so far in the branch of this prefix and in those around it."""
        keys = sorted(key for key in self._used_keys if prefix.startswith(key[: key.rfind("/") + 1]))
        entries = (self._entries.get(key) for key in keys)
        return [[entry.key, entry.value] for entry in entries if entry and entry.kind is Kind.ANSWER]

    def effect_keys(self, *, only_new: bool = False) -> list[str]:
        """Return the keys of the effects of this pass, with those that it replays unless `only_new`."""
        replayed = {entry.key for entry in self.journal.entries} if only_new else ()
        effects = (key for key, entry in self._entries.items() if entry.kind.is_nonrepeatable)
        return [key for key in effects if key not in replayed]

    # -- notifications ------------------------------------------------------------------------------

    def should_notify(self) -> bool:
        """Count a notification, and return whether no earlier pass has sent it.

        While replaying, a pass sends none. After the last entry it skips as many as were sent between that
        entry and the end of the pass that wrote the journal.
        """
        if not self._has_new_entries and self._keys_to_replay():
            return False
        self._notified += 1
        return self._has_new_entries or self._notified > self.journal.trailing_notifications

    def _keys_to_replay(self) -> set[str]:
        """Return the keys of the journal that the code has not used yet in this pass."""
        if self._unused_keys is None:
            # An internal entry has the key of its step, "~" and a suffix.
            self._unused_keys = {key.partition("~")[0] for key in self._entries} - self._used_keys
        return self._unused_keys

    # -- the end of the pass ------------------------------------------------------------------------

    def to_journal(
        self,
        outstanding: Mapping[str, Fingerprint],
        unused_responses: Mapping[str, Any],
        url_wait_rounds: int,
    ) -> Journal:
        """Return the journal for the next pass."""
        return Journal(
            self.journal.flow_id,
            tuple(self._entries.values()),
            outstanding,
            unused_responses,
            self._notified,
            url_wait_rounds,
            self.journal.trace,
        )
