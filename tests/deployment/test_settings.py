"""Settings are read once and never guessed: lines of MCP_SETTINGS, and variables of their own."""

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.deployment.settings import VARIABLES, Audit, load_settings
from mcp_roundtrip.internal_errors import SettingsError
from support.setting_examples import (
    ALL_BUT_THOSE_OF_OTHER_MODES,
    BEARER,
    EVERY_SETTING,
    LAMBDA,
    MINIMAL,
    ONE,
    QUEUE,
    TWO,
    UNRESOLVED,
    WORKER,
    WRONG,
)
from support.token_issuer import SIGNATURE_ALGORITHMS


def test_only_the_authorization_mode_is_required():
    settings = load_settings(MINIMAL)
    assert (settings.auth_mode, settings.max_rounds, settings.allowed_origins) == (
        AuthMode.JWT,
        9,
        frozenset(),
    )
    with pytest.raises(SettingsError) as refused:
        settings.required("state_key_arn")
    assert refused.value.setting == "MCP_STATE_KEY_ARN"
    empty = load_settings({**BEARER, "MCP_TOKEN_ALGORITHMS": " , ", "MCP_STATE_PUBLIC_KEYS": ","})
    assert (empty.token_algorithms, empty.state_public_keys) == (("RS256", "ES256"), {})


READ = {
    **{"auth_mode": AuthMode.BEARER, "issuer": "urn:x", "audience": "https://x.test/mcp"},
    "server_card": "com.example/orders",
    "audit": Audit("hash", "shop-AuditLogs-1x/y"),
    "token_issuer": "https://id.test/tenant",
    "token_jwks_uri": "https://id.test/keys?p=policy",
    "token_algorithms": ("ES256", "PS512"),
    "token_type": "at+jwt",
    "token_audience": ("https://x.test/mcp", "api://orders"),
    "scope_prefix": "https://x.test/mcp/",
    "state_key_arn": "arn:aws:kms:eu-west-1:1:key/a",
    "trusted_state_key_arns": ("arn:b", "arn:c"),
    "state_public_keys": {"mrk-1": b"MFk", "2": b"MF"},
    "state_signing": "delegated",
    "revoked_certificates": {ONE, TWO},
    "state_encryption": "enabled",
    "state_encryption_key_arn": "arn:d",
    "trusted_state_encryption_key_arns": ("arn:e",),
    "aws_client": "boto3",
    "allowed_origins": {"https://a.test", "https://b.test"},
    "owners": {"weather": "fn"},
    **{"task_table": "tasks", "task_worker": WORKER, "task_queue": QUEUE, "task_delivery": "queue"},
    **{"traces": "on", "task_lease_s": 15, "max_open_tasks": 0},
    **{"max_rounds": 5, "round_ttl_s": 60, "flow_ttl_s": 120},
    **{"max_body_bytes": 6_291_456, "max_json_values": 100_000},
}


def test_every_setting_is_read_from_its_variable():
    settings = load_settings({**ALL_BUT_THOSE_OF_OTHER_MODES, "UNRELATED": "x"})
    names = [VARIABLES[variable] for variable in ALL_BUT_THOSE_OF_OTHER_MODES]
    assert {name: getattr(settings, name) for name in names} == READ
    of_lambda = load_settings(LAMBDA)
    assert (of_lambda.principal_context_key, of_lambda.scope_context_key) == ("user", "scope")
    for unset in ({}, {"MCP_PRINCIPAL_CONTEXT_KEY": ""}):
        assert load_settings({"MCP_AUTH_MODE": "lambda", **unset}).principal_context_key == "principalId"
    for owners in (
        "stack_*",
        "*",
        "stack_*:live",
        "arn:aws-cn:lambda:cn-north-1:123456789012:function:*:$LATEST",
    ):
        assert load_settings({**MINIMAL, "MCP_OWNERS": f" {owners} "}).owners == owners


def test_the_mode_is_bearer_if_only_an_issuer_is_set():
    settings = load_settings({"MCP_TOKEN_ISSUER": "https://id.test/"})
    assert (settings.auth_mode, settings.derives_audience) == (AuthMode.BEARER, True)
    assert load_settings({**MINIMAL, "MCP_TOKEN_ISSUER": "https://id.test/"}).auth_mode is AuthMode.JWT


def test_the_error_names_the_invalid_setting(subtests):
    for environment, setting in WRONG:
        with subtests.test(str(environment)[:200]):
            with pytest.raises(SettingsError) as refused:
                load_settings(environment)
            assert refused.value.setting == setting
            assert re.search("must be|must hold|; (set|add|remove)", str(refused.value)), "no remedy"


def test_the_algorithms_are_those_that_verify_tokens():
    for name in SIGNATURE_ALGORITHMS:
        assert load_settings({**BEARER, "MCP_TOKEN_ALGORITHMS": name}).token_algorithms == (name,)
    with pytest.raises(SettingsError) as refused:
        load_settings({**BEARER, "MCP_TOKEN_ALGORITHMS": "HS256"})
    assert set(re.findall(r"\w+\d+|EdDSA", str(refused.value))) == SIGNATURE_ALGORITHMS


@pytest.mark.parametrize("number", ["5", "05", " 5 "])
def test_a_count_has_up_to_nine_digits(number):
    assert load_settings({**MINIMAL, "MCP_MAX_ROUNDS": number}).max_rounds == 5
    assert load_settings({**MINIMAL, "MCP_MAX_ROUNDS": "9" * 9}).max_rounds == 10**9 - 1


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
    examples = {name for environment in EVERY_SETTING for name in environment}
    assert examples == VARIABLES.keys(), "tests/support/setting_examples.py"


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


@given(st.sampled_from(EVERY_SETTING), st.data())
def test_a_variable_of_its_own_takes_precedence_and_an_empty_one_unsets(variables, data):
    replaced = data.draw(st.sets(st.sampled_from(sorted(variables.keys() - {"MCP_AUTH_MODE"}))))
    lines = {name: "magic" if name in replaced else text for name, text in variables.items()}
    own = {name: text for name, text in variables.items() if name in replaced}
    assert load_settings({**shared(lines), **own}) == load_settings(variables)
    unset = {name: data.draw(st.sampled_from(("", " "))) for name in replaced}
    kept = {name: text for name, text in variables.items() if name not in replaced}
    assert outcome({**shared(lines), **unset}) == outcome(kept)


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


def test_a_reference_to_the_version_of_a_worker_is_no_worker_in_sam_local():
    environment = {**MINIMAL, "MCP_TASK_WORKER": "ShipWorkerFunction.Version"}
    assert load_settings({**environment, "AWS_SAM_LOCAL": "true"}).task_worker is None
    assert refused(environment).setting == "MCP_TASK_WORKER"


@given(st.sampled_from(EVERY_SETTING), st.booleans())
def test_sam_local_changes_nothing_where_the_settings_are_known(variables, in_lines):
    environment = shared(variables) if in_lines else dict(variables)
    assert load_settings({**environment, "AWS_SAM_LOCAL": "true"}) == load_settings(variables)
