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
def test_the_error_names_the_expected_sources(event: Any) -> None:
    message = error_text(event)
    assert all(source.description in message for source in SOURCES.values())
    assert "similar" not in message


def without(event: Any, path: str) -> Any:
    name, _, rest = path.partition(".")
    remaining = {other: value for other, value in event.items() if other != name}
    return {**remaining, name: without(event[name], rest)} if rest else remaining


OF_ANOTHER_SOURCE = {
    ("function_url", "requestContext.domainName"),
    ("http_api_1_0", "version"),
    ("alb_multi_value", "multiValueHeaders"),
}
"""Members whose absence makes an event one of another source, or as similar to one."""


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (source, path)
        for source in HTTP_SOURCES
        for path in SOURCES[source].has
        if (source, path) not in OF_ANOTHER_SOURCE
    ],
)
def test_the_error_names_missing_members(source: str, path: str) -> None:
    message = error_text(without(sent_by(source, any_call()), path))
    nearest, _, differences = message.partition("It is most similar to ")[2].partition(", which has ")
    assert nearest == SOURCES[source].description
    assert path in differences


@pytest.mark.parametrize(
    ("source", "path"),
    [("http_api", "type"), ("http_api_1_0", "type"), ("rest_api", "type"), ("alb", "multiValueHeaders")],
)
def test_the_error_names_members_that_the_source_does_not_have_and_quotes_none_of_the_event(
    source: str, path: str
) -> None:
    message = error_text({**sent_by(source, any_call()), path: {"x": ["y"]}})
    assert message.endswith(f"{SOURCES[source].description}, which has no {path}")
    mismatch = explain_mismatch({"version": "secret", "requestContext": {"http": {"method": "hidden"}}})
    assert mismatch.endswith('which has version "2.0"')
    assert "secret" not in mismatch
    assert "hidden" not in mismatch
