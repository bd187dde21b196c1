"""What a client declared, and what of a need is missing."""

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
def test_declared(capabilities: dict[str, Any], name: str, declared: bool) -> None:
    assert declares(capabilities, capability_path(name)) is declared


def test_exactly_what_is_missing_is_named() -> None:
    wanted = [("elicitation", "form"), ("sampling", "tools"), ("sampling",), ("roots",)]
    assert missing_capabilities({"elicitation": {}, "sampling": {}}, wanted) == {
        "sampling": {"tools": {}},
        "roots": {},
    }


def test_nothing_missing_is_empty() -> None:
    assert missing_capabilities({"elicitation": {}}, [("elicitation", "form")]) == {}
