"""Session ids that hold what a client declared."""

import json
import re
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, LOG_LEVELS
from mcp_roundtrip.protocol.session_id import MAX_LENGTH, NONCE_BYTES, SessionId
from support.json_values import any_json
from support.tokens import b64, encoded

JSON_VALUES = any_json(finite=True)
SESSION_IDS = st.builds(
    SessionId.create,
    st.sampled_from(LEGACY_VERSIONS),
    st.fixed_dictionaries(
        {}, optional={"name": JSON_VALUES | st.text(), "version": st.text() | st.integers()}
    ),
    st.dictionaries(st.text(max_size=20), JSON_VALUES, max_size=3),
    st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    st.none() | st.sampled_from(LOG_LEVELS),
).filter(lambda session_id: session_id.encode() is not None)


def create(capabilities: dict[str, Any], name: str = "claude", version: str = "1.0") -> SessionId:
    info = {"name": name, "version": version}
    return SessionId.create("2025-11-25", info, capabilities, bytes(NONCE_BYTES))


def raw(content: Any) -> str:
    return b64(json.dumps(content, separators=(",", ":")).encode())


@given(SESSION_IDS)
def test_an_id_is_visible_ascii_and_decodes_to_what_was_encoded(session_id: SessionId) -> None:
    text = session_id.encode()
    assert text is not None
    assert re.fullmatch(r"[\x21-\x7e]+", text)
    assert SessionId.decode(text) == session_id


def test_a_client_that_declares_more_than_fits_has_no_id() -> None:
    ids = [create({"experimental": {"a": "x" * length}}).encode() for length in range(MAX_LENGTH)]
    issued = [each for each in ids if each is not None]
    assert ids[: len(issued)] == issued
    assert max(map(len, issued)) == MAX_LENGTH


def test_a_long_name_is_cut_and_one_that_is_no_text_is_empty() -> None:
    session_id = create({}, "n" * 1_000, "v" * 1_000)
    assert session_id.client_info == {"name": "n" * 64, "version": "v" * 32}
    other = SessionId.create("2025-11-25", {"name": 7}, {}, bytes(NONCE_BYTES))
    assert other.client_info == {"name": "", "version": ""}


VALID = {
    "protocolVersion": "2025-11-25",
    "client": ["claude", "1.0"],
    "capabilities": {"roots": {}},
    "nonce": "A" * 22,
}


def test_the_content_is_readable() -> None:
    session_id = create({"roots": {}})
    assert session_id.encode() == raw(VALID)
    assert SessionId.decode(raw(VALID)) == session_id


CHANGED: list[dict[str, Any]] = [
    {"protocolVersion": "2026-07-28"},
    {"client": {"name": "claude", "version": "1.0"}},
    {"client": ["claude", 1]},
    {"capabilities": []},
    {"capabilities": {"roots": {"a": "x" * MAX_LENGTH}}},
    {"nonce": "A" * 21},
    {"nonce": "A" * 22 + "\n"},
    {"logLevel": "loud"},
    {"principal": "alice"},
]


@pytest.mark.parametrize(
    "content",
    [
        *({name: value for name, value in VALID.items() if name != left_out} for left_out in VALID),
        *({**VALID, **changed} for changed in CHANGED),
        dict(reversed(VALID.items())),
        [],
        None,
    ],
    ids=lambda content: json.dumps(content)[:60],
)
def test_other_content_is_no_session(content: Any) -> None:
    assert SessionId.decode(raw(content)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A" * 100_000,
        "550e8400-e29b-41d4-a716-446655440000",
        "\ud800",
        raw(VALID) + "=",
        raw(VALID) + ", " + raw(VALID),
        raw(VALID)[:-1],
        encoded(VALID),
        *map(b64, (b'{"protocolVersion":NaN}', b"\xff" * 30, b"[" * 1_500, b"9" * 1_500)),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_foreign_and_broken_ids_are_no_session(text: str) -> None:
    assert SessionId.decode(text) is None


@given(SESSION_IDS, st.data())
def test_a_changed_id_is_a_different_valid_one_or_none(session_id: SessionId, data: st.DataObject) -> None:
    text = session_id.encode()
    assert text is not None
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from("AZaz09_-")) + text[at + 1 :]
    decoded = SessionId.decode(changed)
    assert decoded is None or decoded.encode() == changed


def test_the_last_character_of_the_base64_has_one_spelling() -> None:
    text = raw(VALID)
    assert len(text) % 4, "the last character has spare bits"
    spellings = [text[:-1] + last for last in f"{ascii_letters}{digits}-_"]
    assert [each for each in spellings if SessionId.decode(each) == SessionId.decode(text)] == [text]
