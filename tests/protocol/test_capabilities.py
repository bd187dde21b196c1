"""Declared capabilities, and missing ones."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.protocol.capabilities import capability_path, declares, missing_capabilities


@pytest.mark.parametrize(
    ("capabilities", "name", "declared"),
    [
        ({}, "sampling", False),
        ({"sampling": {}}, "sampling", True),
        ({"sampling": None}, "sampling", False),
        ({"sampling": {}}, "sampling.tools", False),
        ({"sampling": {"tools": {}}}, "sampling.tools", True),
        ({"elicitation": {}}, "elicitation", True),
        ({"elicitation": {}}, "elicitation.form", True),
        ({"elicitation": {}}, "elicitation.url", False),
        ({"elicitation": {"url": {}}}, "elicitation.url", True),
        ({"elicitation": {"url": {}}}, "elicitation.form", False),
        ({"elicitation": {"form": {}}}, "elicitation.form", True),
        ({"extensions": {"com.example/approval": {}}}, "extensions.com.example/approval", True),
        ({"extensions": {}}, "extensions.com.example/approval", False),
        ({"sampling": "yes"}, "sampling.tools", False),
        ({"sampling": False}, "sampling", False),
        ({"elicitation": {"form": False}}, "elicitation.form", False),
    ],
)
def test_a_capability_counts_as_declared_as_in_the_table(
    capabilities: dict[str, Any], name: str, declared: bool
) -> None:
    assert declares(capabilities, capability_path(name)) is declared


def test_exactly_the_missing_capabilities_are_named() -> None:
    wanted = [("elicitation", "form"), ("sampling", "tools"), ("sampling",), ("roots",)]
    assert missing_capabilities({"elicitation": {}, "sampling": {}}, wanted) == {
        "sampling": {"tools": {}},
        "roots": {},
    }


def test_no_missing_capability_is_an_empty_object() -> None:
    assert missing_capabilities({"elicitation": {}}, [("elicitation", "form")]) == {}
