"""Properties of the canonical form, and documents that the strict reader refuses."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_roundtrip.protocol.strict_json import (
    MAX_DEPTH,
    TooManyValues,
    canonical_json,
    compact_json,
    digest,
    parse_json,
)
from support.json_values import any_json

JSON = any_json(finite=True, max_leaves=20)


def as_javascript_writes_it(value: object) -> object:
    """Write integral floats as integers, as JSON.stringify does. Up to 2^53 that changes no value."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    if isinstance(value, list):
        return [as_javascript_writes_it(item) for item in value]
    if isinstance(value, dict):
        return {name: as_javascript_writes_it(value[name]) for name in reversed(value)}
    return value


@given(JSON)
def test_a_written_value_round_trips(value: object) -> None:
    assert parse_json(canonical_json(value)) == value
    assert parse_json(compact_json(value)) == value


@given(JSON)
@example([1.0, -0.0, 1e20, {"a": 1, "b": 2}])
def test_neither_reading_nor_a_javascript_runtime_changes_the_canonical_form(value: object) -> None:
    assert canonical_json(parse_json(canonical_json(value))) == canonical_json(value)
    assert canonical_json(as_javascript_writes_it(value)) == canonical_json(value)


NODE = {
    "1e16": "10000000000000000",
    "9007199254740992.0": "9007199254740992",
    "1e20": "100000000000000000000",
    "1e21": "1e+21",
    "123456789.5e3": "123456789500",
    "100.0": "100",
    "-0.0": "0",
    "1e-7": "1e-7",
    "5e-324": "5e-324",
}
"""A number -> the result of JSON.stringify(JSON.parse(...)) in Node.js 20."""


@pytest.mark.parametrize(("text", "written"), NODE.items())
def test_a_number_rewritten_by_node_has_the_same_canonical_form(text: str, written: str) -> None:
    assert canonical_json(parse_json(written)) == canonical_json(parse_json(text))


@given(JSON, JSON)
def test_different_values_have_different_canonical_forms(one: object, other: object) -> None:
    read = [parse_json(canonical_json(each)) for each in (one, other)]
    written = [json.dumps(each, sort_keys=True) for each in read]
    same_json = read[0] == read[1] and written[0] == written[1]
    assert (canonical_json(one) == canonical_json(other)) == same_json


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (9007199254740993, 9007199254740992),
        (65982389175107968.0, 65982389175107970),
        (2, "2"),
        (True, 1),
        (None, False),
    ],
)
def test_similar_values_have_different_canonical_forms(one: object, other: object) -> None:
    assert canonical_json(one) != canonical_json(other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1: "a"}, {"a": object()}])
def test_a_value_without_json_form_has_no_canonical_form(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


def test_digests_differ_by_value_also_of_a_lone_surrogate_and_by_purpose() -> None:
    assert digest("label", "\ud800") != digest("label", "\ud801")
    assert digest("one", {}) != digest("other", {})


def too_deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1, "a": 2}',
        '[{"a": {"b": 1, "b": 1}}]',
        "NaN",
        "1e400",
        "9" * 5000,
        too_deep(MAX_DEPTH + 1),
        too_deep(100_000),
        b"\xff",
        b'"\xc3\x28"',
        '{"a": 1} trailing',
    ],
)
def test_the_reader_refuses_malformed_documents(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_the_reader_accepts_a_document_of_the_maximum_depth_or_with_many_shallow_objects() -> None:
    assert parse_json(too_deep(MAX_DEPTH)) is not None
    assert parse_json("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH) is not None
    assert len(parse_json(json.dumps([{} for _ in range(1000)]))) == 1000


def test_a_refusal_does_not_quote_the_document() -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the text is the point, not its wording
        parse_json('{"password": "hunter2", "password": "hunter3"}')
    assert "hunter" not in str(refusal.value)
    assert "password" not in str(refusal.value)


def count_values(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count_values, children))


SPELLINGS = st.sampled_from([None, 1]), st.booleans()


@given(JSON | st.text(alphabet='[]{},:"\\ ').map(lambda text: [text, {text: text}]), *SPELLINGS)
def test_a_limit_on_values_counts_every_value_and_nothing_in_strings(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text, values = json.dumps(value, indent=indent, ensure_ascii=ascii_only), count_values(value)
    assert parse_json(text, max_values=values) == value
    if values > 1:
        with pytest.raises(TooManyValues, match=f" {values - 1} values"):
            parse_json(text, max_values=values - 1)


@pytest.mark.parametrize("text", ["[", '["', '[1,"\\', "[,,,,", '{"a":1,}', "[}", '["a"x,1]', '[\\",1,1,1]'])
def test_a_malformed_document_is_refused_at_any_limit_on_values(text: str) -> None:
    for limit in range(1, 8):
        with pytest.raises(ValueError, match=r"not JSON|more than"):
            parse_json(text, max_values=limit)
