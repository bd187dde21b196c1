"""Form bodies of browsers, and of attackers."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.question_ui.form import MAX_VALUES, MalformedForm, only_value, parse_form, query_value

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@given(st.lists(st.tuples(texts, texts)))
def test_the_body_of_a_browser_is_read_as_it_was_entered(pairs: list[tuple[str, str]]) -> None:
    expected: dict[str, list[str]] = {}
    for name, value in pairs:
        expected.setdefault(name, []).append(value)
    body = urlencode([(name.replace("\n", "\r\n"), value.replace("\n", "\r\n")) for name, value in pairs])
    for each in (body, body.encode()):
        assert parse_form(each) == {name: tuple(values) for name, values in expected.items()}


@pytest.mark.parametrize(
    "body", ["a=%", "a=%zz", "%f=1", "a=%ff", "a=%c3%28", "a=%ed%a0%80", b"a=\xff", "a=\ud800"]
)
def test_a_body_that_no_browser_sends_is_refused(body: str | bytes) -> None:
    with pytest.raises(MalformedForm):
        parse_form(body)


@given(st.binary(max_size=200))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    with suppress(MalformedForm):
        values = parse_form(body)
        assert all(isinstance(value, str) for each in values.values() for value in each)


def test_the_number_of_values_is_bounded() -> None:
    assert len(parse_form("&".join(["a=1"] * MAX_VALUES))["a"]) == MAX_VALUES
    with pytest.raises(MalformedForm):
        parse_form("&" * MAX_VALUES)


@pytest.mark.parametrize("query", ["", "x=1", "token", "token=", "token=a&token=b", "token=%", "TOKEN=a"])
def test_a_query_without_exactly_one_token_has_none(query: str) -> None:
    assert query_value(query, "token") == ""


def test_a_repeated_value_is_no_value() -> None:
    values = parse_form("token=a&other=b&other=c")
    assert (only_value(values, "token"), only_value(values, "other")) == ("a", "")
