import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from corpus.clock import START
from corpus.golden import Difference, Record, compare, describe, encode
from corpus.placeholders import Placeholders
from corpus.recording import Case, record

Change = Callable[[Record], Any]

RECORDED: Record = {
    "case": "a form",
    "exchanges": [
        {
            "request": {"body": {"method": "tools/call"}},
            "response": {"statusCode": 200, "body": {"json": {"state": "<state 1>"}}},
            "aws": [{"aws": "kms:GenerateMac"}, {"aws": "kms:Sign", "Message": "<hex 1>"}],
            "log": [{"message": "request_completed", "round": 1, "flow": "<hex 1>"}],
        },
        {"request": {"worker": {"task": "<id 1>"}}, "response": None},
    ],
    "rows": [{"sk": {"S": "M"}, "st": {"S": "working"}}],
    "questions": {"inputRequests": {"a": 1, "b": 2}},
    "inside": [{"token": "<state 1>", "claims": {"rnd": 1}}],
}


def differences(changed: Record) -> list[Difference]:
    return compare(encode(RECORDED), encode(changed))


def first(record: Record) -> Any:
    return record["exchanges"][0]


def in_another_order(record: Record) -> None:
    requests = record["questions"]["inputRequests"]
    requests["a"] = requests.pop("a")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda r: first(r)["response"].update(statusCode=400), "tools/call > response > statusCode"),
        (lambda r: first(r)["aws"].pop(0), "aws > kms:GenerateMac"),
        (lambda r: first(r)["log"][0].update(flow="<hex 2>"), "log > request_completed > flow"),
        (lambda r: r["rows"][0].pop("st"), "row M > st > S"),
        (lambda r: r["inside"][0]["claims"].update(rnd=True), "<state> > claims > rnd"),
        (lambda r: r["exchanges"].pop(), "exchanges > worker"),
        (in_another_order, "inputRequests"),
    ],
)
def test_a_change_is_found_and_described(change: Change, path: str) -> None:
    changed = deepcopy(RECORDED)
    change(changed)
    assert path in describe({"a form": differences(changed)})


def test_what_clients_see_comes_first() -> None:
    changed = deepcopy(RECORDED)
    first(changed)["aws"].pop(0)
    first(changed)["response"].update(statusCode=400)
    where = "exchanges > tools/call"
    assert describe({"a form": differences(changed)}).splitlines() == [
        "in 1 case, for example 'a form'",
        f"    - {where} > response > statusCode: 200",
        f"    + {where} > response > statusCode: 400",
        "in 1 case, for example 'a form'",
        f"    - {where} > aws > kms:GenerateMac:",
        f'    - {where} > aws > kms:GenerateMac > aws: "kms:GenerateMac"',
    ]


def test_placeholders_may_have_other_numbers_and_members_another_order() -> None:
    text = json.dumps(RECORDED)
    after = json.loads(text.replace("<hex 1>", "<hex 5>").replace("<state 1>", "<state 7>"))
    first(after)["response"] = dict(reversed(first(after)["response"].items()))
    assert differences(after) == []


def test_a_case_with_a_fault_that_no_call_meets_is_not_recorded() -> None:
    with pytest.raises(AssertionError, match="too few calls"):
        record(Case("a form", lambda world: world.account.fail("kms", "Sign")))


def test_a_time_in_another_unit_or_format_is_a_difference() -> None:
    forms = [START, int(START), int(START * 1000), "2026-08-01T16:10:00Z", "2026-08-01T16:10:00.000Z"]
    placeholders = Placeholders()
    assert len({placeholders.replace(form) for form in forms}) == len(forms)
