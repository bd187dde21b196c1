"""The table of what clients are known to do."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest

from mcp_roundtrip.protocol.capabilities import (
    CLIENT_BEHAVIORS,
    ClientBehavior,
    breaks_on_state_only_rounds,
    version_key,
)
from support.project import ROOT

PIN_FILES = ("pyproject.toml", "Makefile", "tests/clients/**/*")


@pytest.mark.parametrize("version", ["1.0.0", "2.5", "", None, 7])
def test_claude_ai_breaks_on_state_only_rounds_in_every_version(version: Any) -> None:
    assert breaks_on_state_only_rounds({"name": "Anthropic/ClaudeAI", "version": version})


@pytest.mark.parametrize(
    "info",
    [
        None,
        {},
        {"version": "1.0.0"},
        {"name": None, "version": "1.0.0"},
        {"name": ["Anthropic/ClaudeAI"], "version": "1.0.0"},
        {"name": "anthropic/claudeai", "version": "1.0.0"},
        {"name": "Anthropic/ClaudeAI2", "version": "1.0.0"},
        {"name": "Anthropic/ClaudeAI\n", "version": "1.0.0"},
        {"name": "claude-code", "version": "2.1.317"},
        {"name": "mcp", "version": "0.1.0"},
        {"name": "x" * 1_000_000, "version": "1" * 1_000_000},
    ],
    ids=lambda info: repr(info)[:60],
)
def test_other_clients_are_taken_to_follow_the_specification(info: Any) -> None:
    assert not breaks_on_state_only_rounds(info)


def row(first: str | None, last: str | None, name: str | None = "client") -> ClientBehavior:
    return ClientBehavior("Client", name, (first, last), True, "https://x.test", date(2026, 1, 1), "1.0.0")


@pytest.mark.parametrize(
    ("first", "last", "version", "applies"),
    [
        (None, None, "", True),
        (None, "1.9", "1.9.0", True),
        (None, "1.9", "1.10", False),
        ("1.9", None, "1.10.0-beta.2", True),
        ("1.9", None, "1.8.99", False),
        ("1.9", "2.0", "v1.9.5+build.7", True),
        ("1.9", None, "unknown", False),
    ],
)
def test_a_row_applies_to_its_versions(
    first: str | None, last: str | None, version: str, applies: bool
) -> None:
    assert row(first, last).applies_to("client", version) is applies
    assert not row(first, last).applies_to("another", version)
    assert not row(first, last, None).applies_to("client", version)


@pytest.mark.parametrize("each", CLIENT_BEHAVIORS, ids=lambda each: each.client)
def test_a_row_names_a_source_that_can_be_checked(each: ClientBehavior) -> None:
    assert each.source.startswith("https://")
    assert each.date <= date.today()
    assert each.checked_with
    assert (each.name is None) is (each.package is not None), "a client that is not installed has a name"


@pytest.mark.parametrize(
    "each", [each for each in CLIENT_BEHAVIORS if each.package], ids=lambda each: each.client
)
def test_a_row_was_checked_with_the_release_that_the_tests_install(each: ClientBehavior) -> None:
    """Check the client's behavior again with the newer release, then update the row or remove it."""
    paths = (path for pattern in PIN_FILES for path in ROOT.glob(pattern) if path.is_file())
    pin = re.compile(rf"(?<![\w@/.-]){re.escape(each.package or '')}(?:\[[^\]]*\])?(?:==|@)([0-9][\w.]*)")
    installed = {match[1] for path in paths for match in pin.finditer(path.read_text("utf-8", "ignore"))}
    newer = {version for version in installed if version_key(version) > version_key(each.checked_with)}
    assert not newer, f"{each.client} was checked with {each.checked_with}"
