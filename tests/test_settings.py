"""Settings: read once, never guessed."""

from __future__ import annotations

import pytest

from mcp_roundtrip.auth import AuthMode
from mcp_roundtrip.errors import SettingsError
from mcp_roundtrip.settings import load

MINIMAL = {"MCP_AUTH_MODE": "jwt"}


def test_the_minimum_is_who_identifies_callers() -> None:
    settings = load(MINIMAL)
    assert (settings.auth_mode, settings.max_rounds, settings.allowed_origins) == (
        AuthMode.JWT,
        9,
        frozenset(),
    )


def test_every_setting_is_read_from_its_variable() -> None:
    settings = load(
        {
            "MCP_AUTH_MODE": "lambda",
            "MCP_PRINCIPAL_CONTEXT_KEY": "user",
            "MCP_ISSUER": "urn:x",
            "MCP_AUDIENCE": "https://x.test/mcp",
            "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:1:key/a",
            "MCP_PREVIOUS_STATE_KEY_ARNS": "arn:b, arn:c",
            "MCP_ALLOWED_ORIGINS": "https://a.test,https://b.test",
            "MCP_OWNERS": '{"weather": "fn"}',
            "MCP_MAX_ROUNDS": "5",
            "MCP_ROUND_TTL_S": "60",
            "MCP_FLOW_TTL_S": "120",
            "UNRELATED": "x",
        }
    )
    assert settings.previous_state_key_arns == ("arn:b", "arn:c")
    assert settings.allowed_origins == {"https://a.test", "https://b.test"}
    assert settings.owners == {"weather": "fn"}
    assert (settings.max_rounds, settings.round_ttl_s, settings.flow_ttl_s) == (5, 60, 120)
    assert settings.required("issuer") == "urn:x"


@pytest.mark.parametrize(
    ("environment", "setting"),
    [
        ({}, "MCP_AUTH_MODE"),
        ({"MCP_AUTH_MODE": ""}, "MCP_AUTH_MODE"),
        ({"MCP_AUTH_MODE": "open"}, "MCP_AUTH_MODE"),
        ({"MCP_AUTH_MODE": "lambda"}, "MCP_PRINCIPAL_CONTEXT_KEY"),
        ({**MINIMAL, "MCP_MAX_ROUNDS": "0"}, "MCP_MAX_ROUNDS"),
        ({**MINIMAL, "MCP_MAX_ROUNDS": "many"}, "MCP_MAX_ROUNDS"),
        ({**MINIMAL, "MCP_ROUND_TTL_S": "9" * 5_000}, "MCP_ROUND_TTL_S"),
        ({**MINIMAL, "MCP_OWNERS": "{"}, "MCP_OWNERS"),
        ({**MINIMAL, "MCP_OWNERS": "[]"}, "MCP_OWNERS"),
    ],
)
def test_a_wrong_setting_is_named(environment: dict[str, str], setting: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environment)
    assert refused.value.setting == setting


def test_a_setting_that_is_needed_only_now_is_named_now() -> None:
    with pytest.raises(SettingsError) as refused:
        load(MINIMAL).required("state_key_arn")
    assert refused.value.setting == "MCP_STATE_KEY_ARN"
