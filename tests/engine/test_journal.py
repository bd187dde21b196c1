"""The form in which a journal travels."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.errors import StateRejected


def test_empty_members_do_not_travel() -> None:
    assert Journal("id").to_json() == {"v": 1, "id": "id"}


def test_an_entry_travels_as_a_short_row() -> None:
    journal = Journal("id", (Entry("a", Kind.STEP, 1), Entry("b", Kind.ANSWER, {}, Fingerprint("m", "f"))))
    assert journal.to_json()["j"] == [["a", "s", 1], ["b", "a", {}, "m", "f"]]


@pytest.mark.parametrize("data", [None, [], {}, {"v": 2, "id": "x"}, {"v": "1", "id": "x"}])
def test_another_versions_state_is_refused(data: Any) -> None:
    with pytest.raises(StateRejected):
        Journal.from_json(data)


def test_a_fingerprint_says_what_changed() -> None:
    one = Fingerprint("m", "f")
    assert one.changes(one) == ""
    assert one.changes(Fingerprint("n", "f")) == "message"
    assert "form" in one.changes(Fingerprint("m", "g"))
    assert one.changes(Fingerprint("n", "g")).startswith("message and form")
