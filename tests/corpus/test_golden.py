"""The reader of the corpus finds and describes differences, and only differences."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from corpus.catalog import all_cases
from corpus.clock import START
from corpus.golden import Comparison, Difference, Record, describe, load
from corpus.placeholders import Placeholders
from corpus.record import save
from corpus.recording import record

Change = Callable[[Record], Any]

RECORDED: Record = {
    "case": "a form",
    "exchanges": [
        {
            "request": {"http": "POST /mcp", "body": {"method": "tools/call"}},
            "response": {
                "statusCode": 200,
                "body": {"json": {"error": {"code": -32602}, "state": "<state 1>"}},
            },
            "aws": [{"aws": "kms:GenerateMac"}, {"aws": "kms:Sign", "Message": "<hex 1>"}],
            "log": [{"message": "request_completed", "round": 1, "flow": "<hex 1>"}],
        },
        {"request": {"worker": {"task": "<id 1>"}}, "response": None},
    ],
    "rows": [{"pk": {"S": "<id 1>"}, "sk": {"S": "M"}, "st": {"S": "working"}}],
    "inside": [{"token": "<state 1>", "claims": {"rnd": 1}}],
}


def changed(change: Change) -> list[Difference]:
    after = deepcopy(RECORDED)
    change(after)
    return Comparison(RECORDED, after).differences


def first(record: Record) -> Any:
    return record["exchanges"][0]


@pytest.mark.parametrize(
    ("change", "path", "before", "after"),
    [
        (lambda r: first(r)["response"].update(statusCode=400), "response.statusCode", "200", "400"),
        (lambda r: first(r)["aws"].pop(0), "aws.kms:GenerateMac", '{"aws": "kms:GenerateMac"}', "nothing"),
        (
            lambda r: first(r)["aws"].append({"aws": "kms:Sign"}),
            "aws.kms:Sign",
            "nothing",
            '{"aws": "kms:Sign"}',
        ),
        (lambda r: first(r)["log"][0].update(round=2), "log.request_completed.round", "1", "2"),
        (
            lambda r: first(r)["log"][0].update(flow="<hex 2>"),
            "log.request_completed.flow",
            '"<hex 1>"',
            '"<hex 2>"',
        ),
        (lambda r: r["rows"][0].pop("st"), "row M.st", '{"S": "working"}', "nothing"),
        (lambda r: r["inside"][0]["claims"].update(rnd=True), "<state>.claims.rnd", "1", "true"),
        (lambda r: r["exchanges"].pop(), "request", '"worker"', "nothing"),
    ],
)
def test_a_changed_member_is_found_and_described(change: Change, path: str, before: str, after: str) -> None:
    [difference] = changed(change)
    assert difference.cause[0] == path
    described = describe([difference])
    assert all(text in described for text in ("1 case", "'a form'", path, before, after))


def test_placeholders_may_have_other_numbers() -> None:
    text = json.dumps(RECORDED)
    after = json.loads(text.replace("<hex 1>", "<hex 5>").replace("<state 1>", "<state 7>"))
    assert Comparison(RECORDED, after).differences == []


def test_two_values_that_become_one_are_a_difference() -> None:
    before = {**RECORDED, "exchanges": [{"request": {}, "response": ["<id 1>", "<id 2>"]}]}
    after = {**RECORDED, "exchanges": [{"request": {}, "response": ["<id 1>", "<id 1>"]}]}
    [difference] = Comparison(before, after).differences
    assert (difference.before, difference.after) == ("<id 2>", "<id 1>")


def test_the_order_of_questions_counts_and_that_of_other_members_does_not() -> None:
    def ordered(name: str, *members: str) -> Record:
        return {**RECORDED, "exchanges": [{"request": {}, "response": {name: dict.fromkeys(members)}}]}

    assert Comparison(ordered("meta", "a", "b"), ordered("meta", "b", "a")).differences == []
    [difference] = Comparison(
        ordered("inputRequests", "a", "b"), ordered("inputRequests", "b", "a")
    ).differences
    assert difference.path[-1] == "the order"


def test_a_time_in_another_unit_or_format_is_a_difference() -> None:
    forms = [START, int(START), int(START * 1000), "2026-08-01T16:10:00Z", "2026-08-01T16:10:00.000Z"]
    placeholders = Placeholders()
    assert len({placeholders.replace(form) for form in forms}) == len(forms)


def test_a_record_is_the_same_bytes_in_any_order_and_is_read_again(tmp_path: Path) -> None:
    records = [{**RECORDED, "case": name} for name in ("b", "a")]
    save(records, tmp_path / "one")
    save(reversed(records), tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert load(tmp_path / "one") == {record["case"]: record for record in records}


def test_a_case_recorded_twice_is_the_same() -> None:
    case = all_cases()[0]
    assert record(case) == record(case)
