"""The error for an event from no known source."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.adapters.detect import SOURCES, UnknownEventSource, detect, explain_mismatch
from support.event_sources import HTTP_SOURCES, any_call, sent_by


def error_text(event: Any) -> str:
    with pytest.raises(UnknownEventSource) as raised:
        detect(event)
    return str(raised.value)


@pytest.mark.parametrize("event", [{}, {"Records": [{"body": "x"}]}, None, [], {"type": "REQUEST"}])
def test_what_was_expected_is_said(event: Any) -> None:
    message = error_text(event)
    assert all(source.description in message for source in SOURCES.values())
    assert "similar" not in message


def without(event: Any, path: str) -> Any:
    name, _, rest = path.partition(".")
    kept = {other: value for other, value in event.items() if other != name}
    return {**kept, name: without(event[name], rest)} if rest else kept


OF_ANOTHER_SOURCE = {
    ("function_url", "requestContext.domainName"),
    ("http_api_1_0", "version"),
    ("alb_multi_value", "multiValueHeaders"),
}
"""Without these members an event is of another source, or as near to one."""


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (source, path)
        for source in HTTP_SOURCES
        for path in SOURCES[source].has
        if (source, path) not in OF_ANOTHER_SOURCE
    ],
)
def test_what_an_event_lacks_is_said(source: str, path: str) -> None:
    message = error_text(without(sent_by(source, any_call()), path))
    nearest, _, differences = message.partition("It is most similar to ")[2].partition(", which has ")
    assert nearest == SOURCES[source].description
    assert path in differences


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("http_api", "type"),
        ("http_api_1_0", "type"),
        ("rest_api", "type"),
        ("alb", "multiValueHeaders"),
    ],
)
def test_what_an_event_has_too_much_is_said(source: str, path: str) -> None:
    message = error_text({**sent_by(source, any_call()), path: {"x": ["y"]}})
    assert message.endswith(f"{SOURCES[source].description}, which has no {path}")


def test_an_authorizers_event_is_distinguished_from_a_request() -> None:
    event = {**sent_by("http_api", any_call()), "type": "REQUEST", "routeArn": "arn:aws:execute-api:x"}
    assert error_text(event).endswith("an API Gateway HTTP API request (payload 2.0), which has no type")


def test_a_text_that_was_expected_is_quoted_and_none_of_the_events() -> None:
    message = explain_mismatch({"version": "secret", "requestContext": {"http": {"method": "hidden"}}})
    assert message.endswith('which has version "2.0"')
    assert "secret" not in message
    assert "hidden" not in message
