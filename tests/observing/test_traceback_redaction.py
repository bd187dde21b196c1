"""Redacted tracebacks have the location and kind of an error but no values of the request."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from mcp_roundtrip.observing.traceback_redaction import MAX_MESSAGE, redacted_traceback


def traceback(message: str, *values_of_request: Any) -> str:
    try:
        raise ValueError(message)
    except ValueError as error:
        return redacted_traceback(error, values_of_request)


def test_location_and_kind_of_an_error_are_not_redacted():
    text = traceback("no such city: Atlantis", {"location": "Atlantis"})
    assert Path(__file__).name in text
    assert "raise ValueError(message)" in text
    assert "city: [redacted]" in text


@pytest.mark.parametrize(
    ("message", "values_of_request"),
    [
        ("card 4111111111111111", {"card": 4111111111111111}),
        ("in {'a': ['sesame']}", {"a": {"b": ["sesame"]}}),
        ("city 'M\\u00fcnchen\\n'", "M\u00fcnchen\n"),
        ("city '\\ud800M'", "\ud800M"),
        (repr('it\'s "quoted"\n'), 'it\'s "quoted"\n'),
        ("3.14159", 3.14159),
        ("pin 1234", 1234),
        ("GET /users/ada%40example.com", "ada@example.com"),
        ("GET /search?q=M%C3%BCnchen+Ost", "M\u00fcnchen Ost"),
        ("GET /files/a/b%20c", "a/b c"),
        ("url: /phones/+49%20170%201234567 (Caused by", "+49 170 1234567"),
        ("for url 'https://core.test/customers/M%C3%BCller,%20J%C3%B6rg'", "M\u00fcller, J\u00f6rg"),
        ('answered b\'{"name": "M\\\\u00fcller"}\'', "M\u00fcller"),
        ('answered b\'{"name": "M\\xc3\\xbcller"}\'', "M\u00fcller"),
        ("'customer \"O\\'Brien\" is unknown'", "O'Brien"),
    ],
)
def test_a_value_is_redacted_in_any_spelling(message, values_of_request):
    assert "[redacted]" in traceback(message, values_of_request)


def test_short_values_and_names_are_not_redacted_and_the_longest_value_is_first():
    message = "None is True: a is not sesame"
    assert message in traceback(message, {"sesame": "a"}, None, True, 12)
    assert "sesame" not in traceback("open sesame", ["open", "open sesame"])


def test_causes_notes_and_groups_are_redacted():
    try:
        try:
            raise KeyError("sesame")
        except KeyError as cause:
            error = ValueError("open sesame")
            error.add_note("it was sesame")
            raise ExceptionGroup("sesame", [error]) from cause
    except ExceptionGroup as group:
        text = redacted_traceback(group, ["sesame"])
    quoting = [line for line in text.splitlines() if "sesame" in line]
    assert all('("' in line for line in quoting), "only the source text"


def noted(note: str) -> Exception:
    error = ValueError("open")
    error.add_note(note)
    return error


SECRET = "open\nsesame or\n  barley"


@pytest.mark.parametrize(
    "error",
    [
        noted(SECRET),
        ExceptionGroup("all, indented", [ValueError(SECRET)]),
        SyntaxError("wrong", ("<answer>", 2, 1, "sesame or\n")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_all_lines_of_a_multiline_value_are_redacted(error):
    text = redacted_traceback(error, [SECRET])
    assert "sesame" not in text
    assert "barley" not in text


def test_a_note_that_looks_like_a_frame_is_redacted():
    assert "sesame" not in redacted_traceback(noted('File "sesame'), ['File "sesame'])


class Order(BaseModel):
    number: int


@pytest.mark.parametrize(
    "number", ["open" + 100 * "!" + "sesame", {"a": {"b": "open" + 100 * "!" + "sesame"}}]
)
def test_messages_of_pydantic_do_not_quote_values(number):
    with pytest.raises(ValidationError) as raised:
        Order.model_validate({"number": number})
    text = redacted_traceback(raised.value, [number])
    assert ("open" in text, "sesame" in text) == (False, False)
    assert "number" in text
    assert "input_type=" in text


def test_a_long_message_is_truncated_in_little_time():
    words = [f"{'b' if number % 2 else ''}{'a' * 4_000}{number}" for number in range(1_000)]
    text = traceback("a" * MAX_MESSAGE, words)
    assert len(text) < MAX_MESSAGE + 1_000
    assert len(traceback("a" * 4_000_000, words)) < 1_000


@given(st.lists(st.text(min_size=4), min_size=1, max_size=5))
def test_no_value_is_ever_quoted(values):
    spellings = [repr(value)[1:-1] for value in values]
    assume(not any(spelling in traceback("", ()) for spelling in spellings))
    rest = traceback(" ".join(map(repr, values)), values).replace("[redacted]", "\n")
    assert not any(spelling in rest for spelling in spellings)


@pytest.mark.parametrize(
    "values", [[f"value-{number}" for number in range(200_000)], ["\n".join(map(str, range(200_000)))]]
)
def test_the_message_is_omitted_if_there_are_too_many_values(values):
    text = traceback("value-150000 failed", values)
    assert "150000" not in text
    assert "raise ValueError(message)" in text
