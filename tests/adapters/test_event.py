"""Functions that all adapters use."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.adapters.event import headers, members, multi_value_headers, text, without_stage


def test_header_names_are_lower_case() -> None:
    assert headers({"headers": {"Mcp-Method": "x"}}) == {"mcp-method": "x"}
    assert multi_value_headers({"multiValueHeaders": {"Mcp-Method": ["x"]}}) == {"mcp-method": "x"}


def test_no_value_of_a_repeated_header_is_dropped() -> None:
    assert headers({"headers": {"Mcp-Name": "a", "mcp-name": "b"}}) == {"mcp-name": "a, b"}
    lists = {"Authorization": ["Bearer a", "Bearer b"], "authorization": ["Bearer a"]}
    assert multi_value_headers({"multiValueHeaders": lists}) == {
        "authorization": "Bearer a, Bearer b, Bearer a"
    }


@pytest.mark.parametrize("given", [None, "x", [], 7, {7: "x"}, {"a": 7}, {"a": None, "origin": []}])
def test_headers_of_other_types_are_none(given: Any) -> None:
    assert headers({"headers": given}) == {}
    assert multi_value_headers({"multiValueHeaders": given}) == {}


def test_a_member_is_found_by_its_path() -> None:
    event = {"a": {"b": "c"}}
    assert members(event, "a") == {"b": "c"}
    assert text(event["a"], "b") == "c"


@pytest.mark.parametrize("event", [{}, {"a": None}, {"a": []}, {"a": "b"}, {"a": {"b": 7}}])
def test_a_member_that_is_missing_or_of_another_type_is_empty(event: dict[str, Any]) -> None:
    assert text(event, "a.b") == ""
    assert members(event, "a.b") == {}


@pytest.mark.parametrize(
    ("path", "stage", "without"),
    [
        ("/mcp", "$default", "/mcp"),
        ("/mcp", "", "/mcp"),
        ("/dev/mcp", "dev", "/mcp"),
        ("/dev/dev/mcp", "dev", "/dev/mcp"),
        ("/dev/", "dev", "/"),
        ("/dev", "dev", "/"),
        ("/device", "dev", "/device"),
        ("/mcp/dev/x", "dev", "/mcp/dev/x"),
        ("", "dev", ""),
    ],
)
def test_the_stage_is_removed_from_the_path(path: str, stage: str, without: str) -> None:
    assert without_stage(path, stage) == without
