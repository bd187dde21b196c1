import string
from base64 import urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import jws

ALPHABET = string.ascii_letters + string.digits + "-_"


def refusal(call, *arguments):
    with pytest.raises(StateRejected) as refused:
        call(*arguments)
    return refused.value.reason


@given(st.binary())
def test_bytes_round_trip_as_base64url_without_padding(data):
    encoded = jws.encode(data)
    assert encoded == urlsafe_b64encode(data).rstrip(b"=")
    assert jws.decode(encoded) == data
    assert jws.encoded_length(len(data)) == len(encoded)


@given(st.text(ALPHABET).map(str.encode))
def test_every_sequence_of_bytes_has_one_spelling(part):
    with suppress(StateRejected):
        assert jws.encode(jws.decode(part)) == part


@given(st.lists(st.text(ALPHABET).map(str.encode), min_size=1, max_size=6), st.integers(1, 6))
def test_a_token_is_split_into_the_expected_number_of_parts(parts, count):
    token = b".".join(parts)
    if len(parts) == count:
        assert jws.split(token, count) == parts
    else:
        assert refusal(jws.split, token, count) == "malformed"


@given(st.characters(codec="ascii", exclude_characters=ALPHABET))
def test_characters_outside_base64url_are_refused(character):
    if character != ".":
        assert refusal(jws.split, f"AA{character}.AA".encode(), 2) == "malformed"


@pytest.mark.parametrize("token", [None, 5, True, b"bytes", ["A"], {}])
def test_a_value_that_is_not_a_string_is_refused(token):
    assert refusal(jws.to_ascii, token, 100) == "not_a_string"


@given(st.text())
def test_a_token_with_other_characters_than_ascii_is_refused(text):
    if text.isascii():
        assert jws.to_ascii(text, len(text)) == text.encode()
    else:
        assert refusal(jws.to_ascii, text, len(text)) == "malformed"


def test_a_token_over_the_limit_is_refused_unread():
    assert jws.to_ascii("A" * 100, 100)
    assert refusal(jws.to_ascii, "\ud800" * 101, 100) == "too_long"
