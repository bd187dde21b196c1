"""The JSON form of audit records, and how they identify callers."""

from __future__ import annotations

import json

import pytest

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.run import MAX_KEY_BYTES
from mcp_roundtrip.observing.audit_records import (
    MAX_ITEMS,
    MAX_TEXT,
    Answer,
    AskedQuestion,
    AuditRecord,
    action_of,
    client_members,
    hashed_caller,
    plain_caller,
)
from mcp_roundtrip.observing.logs_and_metrics import MAX_LINE_BYTES

ALICE = Principal("jwt", "alice", "https://id.test", "app")
KEY = bytes(32)


def test_members_without_a_value_are_omitted_but_the_principal():
    record = AuditRecord("r1", "ended", 1_700_000_000_123, {"stack": "shop"}, outcome="refused")
    assert record.to_json() == {
        "schema": 1,
        "record": "r1",
        "phase": "ended",
        "time": "2023-11-14T22:13:20.123Z",
        "stack": "shop",
        "outcome": "refused",
        "principal": None,
    }


def test_a_line_fits_into_a_log_event_with_any_number_of_steps():
    steps = [f"{number:0900}" for number in range(5_000)]
    record = AuditRecord("r1", "ended", 0, {}, steps=steps).to_json()
    assert (len(record["steps"]), record["steps_omitted"]) == (MAX_ITEMS, 4_900)
    assert len(AuditRecord("r1", "ended", 0, {}, steps=steps).to_line()) <= MAX_LINE_BYTES


@pytest.mark.parametrize("character", ["a", "\x00", "ä", "語", "😀", '"'])
def test_a_line_with_the_longest_keys_of_any_characters_fits_and_says_what_was_cut(character):
    longest = character * (MAX_KEY_BYTES // len(character.encode()) - 3)
    keys = [f"{number:03}{longest}" for number in range(200)]
    record = AuditRecord(
        *("r1", "ended", 0, {"stack": "shop"}, plain_caller(ALICE)),
        asked=[AskedQuestion(key, "elicitation/create", "client") for key in keys],
        answered=[Answer(key, "accept", "client") for key in keys],
        steps=keys,
        fields={f"f{number}": "語" * 256 for number in range(16)},
    )
    line = record.to_line()
    found, whole = json.loads(line), json.dumps(record.to_json(), separators=(",", ":"))
    assert len(line.encode()) <= MAX_LINE_BYTES < len(whole) == found["uncut_bytes"]
    assert [len(found[name]) for name in ("asked", "answered", "steps")] == [MAX_ITEMS] * 3
    assert [found[f"{name}_omitted"] for name in ("asked", "answered", "steps")] == [100] * 3
    assert len({each["key"] for each in found["asked"]}) == len(set(found["steps"])) == MAX_ITEMS
    beginnings = [step.rpartition("...[")[0] or step for step in found["steps"]]
    assert all(key.startswith(each) for key, each in zip(keys, beginnings, strict=False))
    assert found["principal"] == plain_caller(ALICE)


def test_a_hash_is_the_same_for_each_client_of_a_person_and_hides_the_subject():
    members = hashed_caller(ALICE, KEY)
    other = hashed_caller(Principal("jwt", "alice", "https://id.test", "another"), KEY)
    assert members["subject_hash"] == other["subject_hash"]
    assert (members["client_id"], other["client_id"]) == ("app", "another")
    assert "alice" not in str(members)
    assert plain_caller(ALICE)["subject"] == "alice"
    others = [
        hashed_caller(Principal("lambda", "alice", "https://id.test", "app"), KEY),
        hashed_caller(Principal("jwt", "alice", "https://other.test", "app"), KEY),
        hashed_caller(Principal("jwt", "bob", "https://id.test", "app"), KEY),
        hashed_caller(ALICE, b"1" * 32),
    ]
    assert len({each["subject_hash"] for each in (members, *others)}) == 5


def test_what_a_client_says_about_itself_is_cut():
    assert client_members({"name": "n" * 1_000, "version": 3, "title": "t"}) == {"name": "n" * MAX_TEXT}
    assert client_members({"name": ""}) is client_members(None) is client_members("x") is None


def test_only_the_actions_of_an_elicitation_are_named():
    responses = [{"action": "decline"}, {"action": "secret"}, {"roots": []}, "text"]
    assert [action_of(each) for each in responses] == ["decline", "provided", "provided", "provided"]
