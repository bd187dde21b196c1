"""The profiles of released clients."""

from dataclasses import fields
from datetime import date

import pytest

from mcp_roundtrip.protocol.capabilities import breaks_on_state_only_rounds
from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, SUPPORTED_VERSIONS
from mcp_roundtrip_testing.client_profile import ClientProfile

NAMES = ClientProfile.names()

OBSERVED = {field.name for field in fields(ClientProfile)} - {"name", "title", "package", "facts"}
"""The members of a profile that a fact has to give a source for."""


@pytest.mark.parametrize("name", NAMES)
def test_every_observation_has_a_dated_source(name):
    profile = ClientProfile.load(name)
    covered = [member for fact in profile.facts for member in fact["members"]]
    assert sorted(covered) == sorted(OBSERVED), "each member has exactly one source"
    for fact in profile.facts:
        assert fact["source"].startswith("https://")
        assert date.fromisoformat(fact["date"]) <= date.today()
        assert fact["statement"].endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_agrees_with_itself(name):
    profile = ClientProfile.load(name)
    is_legacy = profile.opens_with == "initialize"
    versions = LEGACY_VERSIONS if is_legacy else SUPPORTED_VERSIONS
    assert profile.protocol_version in versions
    assert profile.is_legacy is is_legacy
    assert {"name", "version"} <= profile.client_info.keys()
    if is_legacy:
        assert not profile.answers_questions, "it cannot be asked in the middle of a call"
        assert not profile.follows_state_only_rounds
    if profile.max_rounds is not None:
        assert profile.max_rounds >= 1
    # The server knows which clients break on rounds without questions.
    if not profile.is_legacy and profile.title != "OpenAI Agents SDK":  # its requests do not identify it
        breaks = breaks_on_state_only_rounds(profile.client_info)
        assert breaks is not profile.follows_state_only_rounds
