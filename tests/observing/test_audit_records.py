"""The JSON form of audit records, and how they identify callers."""

import json

import pytest

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.pass_state import MAX_KEY_BYTES
from mcp_roundtrip.observing.audit_records import (
    MAX_ITEMS,
    MAX_TEXT,
    action_of,
    answers_of,
    audit_line,
    client_members,
    hashed_caller,
    plain_caller,
)
from mcp_roundtrip.observing.logs_and_metrics import MAX_LINE_BYTES

ALICE = Principal("jwt", "alice", "https://id.test", "app")
KEY = bytes(32)


def test_members_without_a_value_are_omitted_but_the_principal():
    line = audit_line({"record": "r1", "outcome": "refused", "task": None, "fields": {}, "reason": ""})
    assert json.loads(line) == {"schema": 1, "record": "r1", "outcome": "refused", "principal": None}


@pytest.mark.parametrize("character", ["a", "\x00", "ä", "語", "😀", '"'])
def test_a_line_with_the_longest_keys_of_any_characters_fits_and_says_what_was_cut(character):
    longest = character * (MAX_KEY_BYTES // len(character.encode()) - 3)
    keys = [f"{number:03}{longest}" for number in range(200)]
    line = audit_line(
        {
            "principal": plain_caller(ALICE),
            "asked": [{"key": key, "method": "elicitation/create", "via": "client"} for key in keys],
            "answered": [{"key": key, "action": "accept", "via": "client"} for key in keys],
            "steps": keys,
            "fields": {f"f{number}": "語" * 256 for number in range(16)},
        }
    )
    found = json.loads(line)
    assert len(line.encode()) <= MAX_LINE_BYTES < found["uncut_bytes"]
    assert [len(found[name]) for name in ("asked", "answered", "steps")] == [MAX_ITEMS] * 3
    assert [found[f"{name}_omitted"] for name in ("asked", "answered", "steps")] == [100] * 3
    assert len({each["key"] for each in found["asked"]}) == len(set(found["steps"])) == MAX_ITEMS
    beginnings = [step.rpartition("...[")[0] or step for step in found["steps"]]
    assert all(key.startswith(each) for key, each in zip(keys, beginnings, strict=False))
    assert found["principal"] == plain_caller(ALICE)


def test_a_default_that_was_taken_is_among_the_answers_and_a_step_is_not():
    entries = [Entry("unit", Kind.DEFAULT, None), Entry("convert", Kind.STEP, 20)]
    assert answers_of(entries, {}) == [{"key": "unit", "action": "default", "via": "default"}]


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
