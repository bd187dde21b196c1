"""Selecting the adapter for an event, and the error for one from no known source."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.adapters.detect import SOURCES, EventSource, UnknownEventSource, detect, is_function_url
from support.messages import http_event
from support.sample_events import stable_events

SAMPLES = {file: event for file, event in stable_events().items() if "worker" not in file}


def source_of(file: str, event: dict[str, Any]) -> str:
    folder = Path(file).parts[0]
    return folder if folder in SOURCES else "jsonrpc_event" if "jsonrpc" in event else "http_api"


def test_a_sample_event_matches_only_the_adapter_of_its_source() -> None:
    expected = {file: source_of(file, event) for file, event in SAMPLES.items()}
    for file, event in SAMPLES.items():
        assert [name for name, source in SOURCES.items() if source.matches(event)] == [expected[file]], file
    assert [file for file, event in SAMPLES.items() if detect(event) is not SOURCES[expected[file]]] == []
    assert set(expected.values()) == SOURCES.keys()
    assert detect({**http_event("{}"), "jsonrpc": "2.0"}) is SOURCES["http_api"]


def contradict(one: EventSource, other: EventSource) -> bool:
    """Return whether no event can match both: a member must differ, or be absent in one of them."""
    differ = any(
        isinstance(matcher, str) and isinstance(other.has.get(path), str) and matcher != other.has[path]
        for path, matcher in one.has.items()
    )
    return differ or any(
        path == without or path.startswith(f"{without}.")
        for path, matcher in one.has.items()
        for without, unwanted in other.lacks.items()
        if unwanted in (object, matcher)
    )


@pytest.mark.parametrize(
    ("one", "other"), [*combinations(SOURCES.values(), 2)], ids=lambda source: source.description
)
def test_no_event_can_match_two_sources(one: EventSource, other: EventSource) -> None:
    assert contradict(one, other) or contradict(other, one)


POST = {"http": {"method": "POST"}}
AUTHORIZER_1_0 = {"type": "REQUEST", "path": "/", "httpMethod": "GET", "requestContext": {"identity": {}}}


@pytest.mark.parametrize(
    "event",
    [
        *(None, [], "x", 1, {}, {"Records": []}, {"version": "1.0"}, {"version": "2.0"}),
        {"version": "1.0", "requestContext": POST},
        {"version": "2.0", "requestContext": {"elb": {}}},
        {"version": "2.0", "type": "REQUEST", "requestContext": POST},
        {**AUTHORIZER_1_0, "version": "1.0"},
        {**AUTHORIZER_1_0, "resource": "/mcp"},
    ],
)
def test_any_other_value_and_an_incomplete_event_are_refused(event: Any) -> None:
    with pytest.raises(UnknownEventSource) as raised:
        detect(event)
    assert all(source.description in str(raised.value) for source in SOURCES.values())


@pytest.mark.parametrize(
    ("event", "differences"),
    [
        ({"version": "2.0", "type": "REQUEST", "requestContext": POST}, "no type"),
        ({"requestContext": POST}, 'version "2.0"'),
        ({"Records": []}, None),
    ],
)
def test_a_refusal_says_how_the_event_differs_from_the_most_similar_source(
    event: dict[str, Any], differences: str | None
) -> None:
    with pytest.raises(UnknownEventSource) as raised:
        detect(event)
    assert str(raised.value).partition("It is most similar to ")[2] == (
        f"{SOURCES['http_api'].description}, which has {differences}" if differences else ""
    )


def test_a_function_url_is_recognized_by_its_domain() -> None:
    assert is_function_url("abc.lambda-url.eu-west-1.on.aws")
    others: list[Any] = ["abc.execute-api.eu-west-1.amazonaws.com", "lambda-url.example.com", "", None, 7]
    for other in (*others, "lambda-url.eu-west-1.on.aws", "a.lambda-url.example.com"):
        assert not is_function_url(other)
