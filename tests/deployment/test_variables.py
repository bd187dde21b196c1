"""Settings are lines of MCP_SETTINGS, and variables of their own, which take precedence."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.deployment.settings import VARIABLES, load_settings
from mcp_roundtrip.internal_errors import SettingsError
from support.setting_examples import EVERY_SETTING, UNRESOLVED, WRONG


def shared(variables: Mapping[str, str], separator: str = "=") -> dict[str, str]:
    """Return the variable with these lines."""
    return {"MCP_SETTINGS": "\n".join(f"{name}{separator}{text}" for name, text in variables.items())}


def refused(environment: Mapping[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as error:
        load_settings(environment)
    return error.value


def outcome(environment: Mapping[str, str]) -> object:
    try:
        return load_settings(environment)
    except SettingsError as error:
        return str(error)


def test_the_examples_have_every_setting():
    assert {name for environment in EVERY_SETTING for name in environment} == VARIABLES.keys()


@pytest.mark.parametrize("separator", ["=", " = "])
def test_a_line_sets_what_the_variable_sets(separator, subtests):
    for variables in EVERY_SETTING:
        expected = load_settings(variables)
        assert load_settings(shared(variables, separator)) == expected
        for name, text in variables.items():
            with subtests.test(name):
                lines = {other: value for other, value in variables.items() if other != name}
                assert load_settings({**shared(lines), name: text}) == expected
                assert load_settings({**lines, **shared({name: text})}) == expected


def test_a_wrong_value_in_a_line_is_reported_as_in_the_variable(subtests):
    for variables, setting in WRONG:
        if variables:
            with subtests.test(str(variables)[:200]):
                assert refused(shared(variables)).setting == setting
                assert str(refused(shared(variables))) == str(refused(variables))


@given(st.sampled_from(EVERY_SETTING), st.data())
def test_a_variable_of_its_own_takes_precedence_and_an_empty_one_unsets(variables, data):
    replaced = data.draw(st.sets(st.sampled_from(sorted(variables.keys() - {"MCP_AUTH_MODE"}))))
    lines = {name: "magic" if name in replaced else text for name, text in variables.items()}
    own = {name: text for name, text in variables.items() if name in replaced}
    assert load_settings({**shared(lines), **own}) == load_settings(variables)
    unset = {name: data.draw(st.sampled_from(("", " "))) for name in replaced}
    kept = {name: text for name, text in variables.items() if name not in replaced}
    assert outcome({**shared(lines), **unset}) == outcome(kept)


@given(st.sampled_from(EVERY_SETTING), st.data())
def test_white_space_around_lines_has_no_effect(variables, data):
    space = st.text(" \t\r\n", max_size=4)
    lines = (data.draw(space) + f"{name}={text}" + data.draw(space) for name, text in variables.items())
    assert load_settings({"MCP_SETTINGS": "\n".join(lines)}) == load_settings(variables)


def test_the_value_is_everything_after_the_first_equals_sign():
    lines = {"MCP_AUTH_MODE": "jwt", "MCP_STATE_PUBLIC_KEYS": "1:TU==,2:TUY=", "MCP_ISSUER": "=a="}
    settings = load_settings(shared(lines))
    assert (settings.state_public_keys, settings.issuer) == ({"1": b"M", "2": b"MF"}, "=a=")
    # A variable of its own that is unknown may be for another program.
    assert load_settings({**shared(lines), "MCP_INSPECTOR": "1"}) == settings


@pytest.mark.parametrize(
    "lines",
    [
        "MCP_MAX_ROUND=5",
        "MCP_FROM_THE_FUTURE=",
        "MCP_SETTINGS=MCP_ISSUER=shop",
        "mcp_issuer=shop",
        "ISSUER=shop",
        "POWERTOOLS_LOG_LEVEL=INFO",
        "=shop",
        "MCP_ISSUER",
        "MCP_ISSUER: shop",
        "${Platform.Outputs.Settings}",
        "MCP_ISSUER=shop\nMCP_ISSUER=shop",
        "MCP_ISSUER=\nMCP_ISSUER=shop",
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(lines):
    for variable in ({}, {"MCP_ISSUER": "own"}):
        environment = {"MCP_SETTINGS": f"MCP_AUTH_MODE=none\n{lines}", **variable}
        for given_environment in (environment, {**environment, "AWS_SAM_LOCAL": "true"}):
            assert refused(given_environment).setting == "MCP_SETTINGS"


@pytest.mark.parametrize("text", UNRESOLVED)
def test_unresolved_settings_have_fixed_values_or_those_of_variables_in_sam_local_only(text):
    deployed, local = {"MCP_SETTINGS": text}, {"MCP_SETTINGS": text, "AWS_SAM_LOCAL": "true"}
    fixed = {"MCP_ISSUER": "sam-local", "MCP_AUDIENCE": "http://127.0.0.1:3000/mcp"}
    assert load_settings(local) == load_settings({"MCP_AUTH_MODE": "none", **fixed})
    for own in ({}, {"MCP_AUTH_MODE": "none"}):
        assert refused({**deployed, **own}).setting == "MCP_SETTINGS"
    settings = load_settings({**local, "MCP_AUTH_MODE": "jwt", "MCP_ISSUER": "shop", "MCP_MAX_ROUNDS": "3"})
    assert (settings.auth_mode, settings.issuer, settings.max_rounds) == (AuthMode.JWT, "shop", 3)
    for closed in ({**local, "MCP_AUTH_MODE": ""}, {}, {"AWS_SAM_LOCAL": "true"}):
        assert refused(closed).setting == "MCP_AUTH_MODE"


@given(st.sampled_from(EVERY_SETTING), st.booleans())
def test_sam_local_changes_nothing_where_the_settings_are_known(variables, in_lines):
    environment = shared(variables) if in_lines else dict(variables)
    assert load_settings({**environment, "AWS_SAM_LOCAL": "true"}) == load_settings(variables)
