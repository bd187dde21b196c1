"""Serialization of responses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from mcp_roundtrip.protocol.http import HttpResponse, accepts, build_response, payload_size
from mcp_roundtrip.protocol.strict_json import compact_json
from support.function_calls import count_function_calls


def repaired(text: str) -> str:
    """Repair independently: join surrogate pairs, and replace lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass").translate(
        dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
    )  # fmt: skip


# Lone surrogates, pairs, and text that looks like an escape of one.
PIECES = st.sampled_from(
    ["\ud83d", "\ude00", "\ud800", "\udfff", "\U0001f600", "\\", "u", "ud83d", "\\ud83d", "\n", '"', "é"]
)


@given(st.lists(PIECES | st.text()).map("".join))
def test_a_lone_surrogate_is_replaced_and_other_text_is_unchanged(text: str) -> None:
    body = HttpResponse(200, compact_json({text: [text]})).body
    assert from_json(body) == {repaired(text): [repaired(text)]}


@given(st.lists(st.lists(PIECES).map("".join), min_size=1))
def test_every_event_of_a_stream_is_valid_and_no_proxy_may_buffer_it(texts: list[str]) -> None:
    response = build_response("{}", map(compact_json, texts), {"accept": "text/event-stream"})
    read = [from_json(line.removeprefix("data: ")) for line in response.body.splitlines() if line]
    assert read == [*(repaired(text) for text in texts), {}]
    assert response.headers["x-accel-buffering"] == "no"


@given(st.lists(st.lists(PIECES).map("".join), min_size=1))
def test_a_body_has_the_size_that_it_takes_in_the_response_of_the_function(texts: list[str]) -> None:
    *events, message = map(compact_json, texts)
    body = build_response(message, events, {"accept": "text/event-stream"}).body
    assert payload_size(body) == len(json.dumps(body)) - len('""')


def test_the_largest_response_is_scanned_in_one_pass() -> None:
    body = compact_json(["\U0001f600\n" * 428_000])
    assert count_function_calls(lambda: HttpResponse(200, body)) <= 20


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        ("application/json, text/event-stream", True),
        ("Text/Event-Stream", True),
        ("text/*", True),
        ("*/*", True),
        ("*/*;q=0, text/event-stream", True),
        ("text/event-stream;q=0", False),
        ("text/event-stream ; Q=0.000, */*", False),
        ("text/*;q=0, */*", False),
        ("text/event-stream;level=0;q=low", True),
        ("application/json", False),
        ("text/event-streams, x-text/event-stream", False),
    ],
)
def test_the_most_specific_media_range_decides_whether_a_stream_is_accepted(
    accept: str, accepted: bool
) -> None:
    assert accepts(accept, "text/event-stream") is accepted
