"""Declared capabilities, and missing ones."""

from typing import Any

import pytest

from mcp_roundtrip.protocol.capabilities import (
    breaks_on_state_only_rounds,
    capability_path,
    declares,
    missing_capabilities,
)


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
    assert missing_capabilities({"elicitation": {}}, wanted[:1]) == {}


@pytest.mark.parametrize(
    "info",
    [
        None,
        {},
        {"name": ["Anthropic/ClaudeAI"]},
        {"name": "Anthropic/ClaudeAI2", "version": "1.0.0"},
        {"name": "claude-code"},
    ],
)
def test_only_claude_ai_breaks_on_state_only_rounds_in_every_version(info: Any) -> None:
    assert not breaks_on_state_only_rounds(info)
    for version in ("1.0.0", "2.5", "", None, 7):
        assert breaks_on_state_only_rounds({"name": "Anthropic/ClaudeAI", "version": version})
