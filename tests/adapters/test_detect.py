"""Selecting the adapter for an event."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.adapters.detect import (
    SOURCES,
    EventSource,
    UnknownEventSource,
    detect,
    is_function_url,
)
from mcp_roundtrip.adapters.event_formats import ADAPTERS
from support.messages import http_event
from support.sample_events import stable_events

SAMPLES = {file: event for file, event in stable_events().items() if "worker" not in file}


def fitting(event: dict[str, Any]) -> list[str]:
    return [name for name, source in SOURCES.items() if source.matches(event)]


def source_of(file: str, event: dict[str, Any]) -> str:
    folder = Path(file).parts[0]
    return folder if folder in SOURCES else "jsonrpc_event" if "jsonrpc" in event else "http_api"


def test_a_sample_event_matches_only_the_adapter_of_its_source() -> None:
    expected = {file: source_of(file, event) for file, event in SAMPLES.items()}
    assert {file: fitting(event) for file, event in SAMPLES.items()} == {
        file: [source] for file, source in expected.items()
    }
    assert [file for file, event in SAMPLES.items() if detect(event) is not ADAPTERS[expected[file]]] == []


def test_every_source_has_a_sample_event() -> None:
    assert {source_of(file, event) for file, event in SAMPLES.items()} == SOURCES.keys()


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


NAMES = sorted({name for event in SAMPLES.values() for name in event})
CONTEXTS = [event["requestContext"] for event in SAMPLES.values() if "requestContext" in event]
MIXED_CONTEXT = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from([each[name] for each in CONTEXTS if name in each])
        for name in sorted({name for each in CONTEXTS for name in each})
    },
)
MIXED = st.fixed_dictionaries(
    {},
    optional={
        name: MIXED_CONTEXT
        if name == "requestContext"
        else st.sampled_from([event[name] for event in SAMPLES.values() if name in event])
        for name in NAMES
    },
)


@given(MIXED)
def test_an_event_mixed_from_all_sources_matches_at_most_one_adapter(event: dict[str, Any]) -> None:
    if names := fitting(event):
        assert [detect(event)] == [ADAPTERS[name] for name in names]
    else:
        with pytest.raises(UnknownEventSource):
            detect(event)


def test_an_http_event_with_members_of_other_sources_is_an_http_event() -> None:
    assert detect({**http_event("{}"), "jsonrpc": "2.0"}) is ADAPTERS["http_api"]


@pytest.mark.parametrize("event", [None, [], "x", 1, {}, {"Records": []}, {"version": "1.0"}])
def test_any_other_value_is_refused(event: Any) -> None:
    with pytest.raises(UnknownEventSource):
        detect(event)


@pytest.mark.parametrize(
    "event",
    [
        {"version": "1.0", "requestContext": {"http": {"method": "POST"}}},
        {"version": "2.0"},
        {"version": "2.0", "requestContext": {"elb": {}}},
        {"version": "2.0", "type": "REQUEST", "requestContext": {"http": {"method": "POST"}}},
    ],
)
def test_an_incomplete_event_is_refused(event: dict[str, Any]) -> None:
    assert fitting(event) == []


@pytest.mark.parametrize(
    ("domain", "is_one"),
    [
        ("abc.lambda-url.eu-west-1.on.aws", True),
        ("abc.execute-api.eu-west-1.amazonaws.com", False),
        ("lambda-url.example.com", False),
        ("lambda-url.eu-west-1.on.aws", False),
        ("a.lambda-url.example.com", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_a_function_url_is_recognized_by_its_domain(domain: Any, is_one: bool) -> None:
    assert is_function_url(domain) is is_one
