"""The profiles in mcp_roundtrip_testing say the same of the installed clients as matrix.toml."""

from __future__ import annotations

import pytest

from mcp_roundtrip_testing.client_profile import ClientProfile
from support.client_pins import pinned_versions
from support.real_clients import RealClient, real_clients

MATRIX = {client.package: client for client in real_clients()}
PROFILES = [ClientProfile.load(name) for name in ClientProfile.names()]
INSTALLED = [profile for profile in PROFILES if profile.package in MATRIX]
ASK_NOTHING = {"langchain-mcp-adapters", "llama-index-tools-mcp", "agno", "mcporter"}
"""They open with `initialize`, and declare nothing that a server could ask for."""

MODES = {"form": "answers_forms", "url": "answers_urls"}


def test_most_installed_clients_have_a_profile() -> None:
    without = MATRIX.keys() - {profile.package for profile in PROFILES}
    assert without == {"@modelcontextprotocol/sdk", "@modelcontextprotocol/ext-tasks", *ASK_NOTHING}, (
        "they need none"
    )


@pytest.mark.parametrize("profile", INSTALLED, ids=lambda profile: profile.name)
def test_a_profile_was_recorded_with_the_release_that_is_installed(profile: ClientProfile) -> None:
    assert profile.version == MATRIX[str(profile.package)].version


@pytest.mark.parametrize("profile", INSTALLED, ids=lambda profile: profile.name)
def test_a_profile_agrees_with_the_matrix(profile: ClientProfile) -> None:
    client: RealClient = MATRIX[str(profile.package)]
    if profile.is_legacy:
        assert client.initialize
        return
    assert profile.opens_with == client.opens_with
    assert profile.follows_state_only_rounds is client.state_only_rounds
    assert profile.max_rounds == (client.max_rounds or None), "it follows no rounds"
    assert client.tasks or not profile.follows_tasks
    assert [mode for mode, member in MODES.items() if getattr(profile, member)] == list(client.asks)


def test_the_profile_of_the_inspector_is_of_its_pinned_version() -> None:
    package = "@modelcontextprotocol/inspector"
    assert ClientProfile.load("inspector").version == pinned_versions(".cache/inspector")[package]


def test_one_installed_client_breaks_on_rounds_without_questions_and_sends_the_same_as_others() -> None:
    modern = [client for client in MATRIX.values() if client.opens_with != "initialize"]
    assert {client.package for client in modern if not client.state_only_rounds} == {"openai-agents"}
