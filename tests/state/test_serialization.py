import string
from base64 import urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import serialization

ALPHABET = string.ascii_letters + string.digits + "-_"


def refusal(call, *arguments):
    with pytest.raises(StateRejected) as refused:
        call(*arguments)
    return refused.value.reason


@given(st.binary())
def test_bytes_are_spelt_as_base64url_without_padding_and_read_back(data):
    encoded = serialization.encode(data)
    assert encoded == urlsafe_b64encode(data).rstrip(b"=")
    assert serialization.decode(encoded) == data
    assert serialization.encoded_length(len(data)) == len(encoded)


@given(st.text(ALPHABET).map(str.encode))
def test_there_is_one_spelling_for_all_bytes(part):
    with suppress(StateRejected):
        assert serialization.encode(serialization.decode(part)) == part


@given(st.lists(st.text(ALPHABET).map(str.encode), min_size=1, max_size=6), st.integers(1, 6))
def test_a_token_is_split_into_as_many_parts_as_it_must_have(parts, count):
    token = b".".join(parts)
    if len(parts) == count:
        assert serialization.split(token, count) == parts
    else:
        assert refusal(serialization.split, token, count) == "malformed"


@given(st.characters(codec="ascii", exclude_characters=ALPHABET))
def test_no_other_character_is_taken(character):
    if character != ".":
        assert refusal(serialization.split, f"AA{character}.AA".encode(), 2) == "malformed"


@pytest.mark.parametrize("token", [None, 5, True, b"bytes", ["A"], {}])
def test_what_is_no_string_is_no_token(token):
    assert refusal(serialization.to_ascii, token, 100) == "not_a_string"


@given(st.text())
def test_a_token_is_ascii(text):
    if text.isascii():
        assert serialization.to_ascii(text, len(text)) == text.encode()
    else:
        assert refusal(serialization.to_ascii, text, len(text)) == "malformed"


def test_a_token_over_the_limit_is_not_read():
    assert serialization.to_ascii("A" * 100, 100)
    assert refusal(serialization.to_ascii, "\ud800" * 101, 100) == "too_long"
