"""The size of log lines and audit records."""

from __future__ import annotations

import json
from operator import mul
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, builds, dictionaries, integers, lists, none, recursive, text

from mcp_roundtrip.observing.logs_and_metrics import MAX_LINE_BYTES, encode_line

SMALL = recursive(
    none() | booleans() | integers() | text(),
    lambda children: lists(children) | dictionaries(text(), children),
    max_leaves=4,
)
LARGE = builds(mul, text(min_size=1, max_size=2), integers(0, 90_000)) | builds(
    lambda item, count: [item] * count, SMALL, integers(0, 1_000)
)


@settings(max_examples=25, deadline=None)
@given(fields=dictionaries(text(max_size=20), SMALL | LARGE, max_size=5))
def test_a_line_fits_into_a_log_event_whatever_its_members_hold(fields):
    line = {"message": "request_completed", **fields}
    written = encode_line(line)
    assert len(written.encode()) <= MAX_LINE_BYTES
    whole = json.dumps(line, separators=(",", ":"))
    if len(whole) <= MAX_LINE_BYTES:
        assert written == whole
    else:
        found = json.loads(written)
        assert found["uncut_bytes"] == len(whole)
        assert found.keys() == {*line, "uncut_bytes"}


def test_only_the_largest_members_of_a_long_line_are_cut():
    fields = {"asked": ["k" * 400] * 300, "exception": "語" * 50_000, "took": {1.5}, "counts": {"a": 1}}
    line = json.loads(encode_line({"message": "request_completed", **fields}))
    assert line["exception"] == "語" * 85 + "...[300000 bytes]"
    assert (line["message"], line["took"], line["counts"]) == ("request_completed", "{1.5}", {"a": 1})
    assert line["asked"] == ["k" * 400] * 300
    assert line["uncut_bytes"] > 400_000


@pytest.mark.parametrize(("levels", "items"), [(1, 500), (2, 30), (3, 10), (50, 1)])
def test_a_line_with_nested_lists_fits(levels, items):
    value: Any = "x" * 1_000
    for _ in range(levels):
        value = [value] * items
    written = encode_line({"message": "m", "nested": value, "other": [value] * 2, "more": ["y"] * 100_000})
    assert len(written) <= MAX_LINE_BYTES
    assert json.loads(written)["message"] == "m"
