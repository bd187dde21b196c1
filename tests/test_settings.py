"""Settings are read once and never guessed."""

from __future__ import annotations

import pytest

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.settings import Audit, AuditMode, AwsClientKind, StateSigning, TokenType

ONE, TWO = "01" * 16, "ef" * 16
MINIMAL = {"MCP_AUTH_MODE": "jwt"}
LAMBDA = {
    "MCP_AUTH_MODE": "lambda",
    "MCP_PRINCIPAL_CONTEXT_KEY": "user",
    "MCP_SCOPE_CONTEXT_KEY": "scope",
}
BEARER = {
    "MCP_AUTH_MODE": "bearer",
    "MCP_TOKEN_ISSUER": "https://id.test/",
    "MCP_AUDIENCE": "https://x.test/mcp",
}


def test_only_the_authorization_mode_is_required() -> None:
    settings = load_settings(MINIMAL)
    assert (settings.auth_mode, settings.max_rounds, settings.allowed_origins) == (
        AuthMode.JWT,
        9,
        frozenset(),
    )


def test_every_setting_is_read_from_its_variable() -> None:
    settings = load_settings(
        {
            "MCP_AUTH_MODE": "bearer",
            "MCP_TOKEN_ISSUER": "https://id.test/tenant",
            "MCP_TOKEN_JWKS_URI": "https://id.test/keys?p=policy",
            "MCP_TOKEN_ALGORITHMS": "ES256, PS512",
            "MCP_TOKEN_TYPE": "at+jwt",
            "MCP_TOKEN_AUDIENCE": "https://x.test/mcp, api://orders",
            "MCP_SCOPE_PREFIX": "{audience}/",
            "MCP_ISSUER": "urn:x",
            "MCP_AUDIENCE": "https://x.test/mcp",
            "MCP_STATE_KEY_ARN": "arn:aws:kms:eu-west-1:1:key/a",
            "MCP_TRUSTED_STATE_KEY_ARNS": "arn:b, arn:c",
            "MCP_STATE_PUBLIC_KEYS": "mrk-1:TUZr, 2:TUY=",
            "MCP_STATE_SIGNING": "delegated",
            "MCP_REVOKED_CERTIFICATES": f"{ONE},{TWO}",
            "MCP_STATE_ENCRYPTION": "enabled",
            "MCP_STATE_ENCRYPTION_KEY_ARN": "arn:d",
            "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": "arn:e",
            "MCP_AWS_CLIENT": "boto3",
            "MCP_ALLOWED_ORIGINS": "https://a.test,https://b.test",
            "MCP_OWNERS": '{"weather": "fn"}',
            "MCP_TASK_LEASE_S": "15",
            "MCP_MAX_OPEN_TASKS": "0",
            "MCP_MAX_ROUNDS": "5",
            "MCP_ROUND_TTL_S": "60",
            "MCP_FLOW_TTL_S": "120",
            "MCP_MAX_BODY_BYTES": "6291456",
            "MCP_MAX_JSON_VALUES": "100000",
            "MCP_AUDIT": "hash:shop-AuditLogs-1x/y",
            "MCP_SERVER_CARD": "com.example/orders",
            "UNRELATED": "x",
        }
    )
    assert settings.server_card == "com.example/orders"
    assert settings.audit == Audit(AuditMode.HASH, "shop-AuditLogs-1x/y")
    assert settings.token_issuer == "https://id.test/tenant"
    assert settings.token_jwks_uri == "https://id.test/keys?p=policy"
    assert settings.token_algorithms == ("ES256", "PS512")
    assert settings.token_type is TokenType.AT_JWT
    assert settings.token_audience == ("https://x.test/mcp", "api://orders")
    assert settings.scope_prefix == "{audience}/"
    assert settings.trusted_state_key_arns == ("arn:b", "arn:c")
    assert settings.state_public_keys == {"mrk-1": b"MFk", "2": b"MF"}
    assert settings.state_signing is StateSigning.DELEGATED
    assert settings.revoked_certificates == {ONE, TWO}
    assert settings.state_encryption_key_arn == "arn:d"
    assert settings.trusted_state_encryption_key_arns == ("arn:e",)
    assert settings.aws_client is AwsClientKind.BOTO3
    assert settings.allowed_origins == {"https://a.test", "https://b.test"}
    assert settings.owners == {"weather": "fn"}
    assert (settings.task_lease_s, settings.max_open_tasks) == (15, 0)
    assert (settings.max_rounds, settings.round_ttl_s, settings.flow_ttl_s) == (5, 60, 120)
    assert (settings.max_body_bytes, settings.max_json_values) == (6_291_456, 100_000)
    assert settings.required("issuer") == "urn:x"


@pytest.mark.parametrize(
    "pattern",
    ["stack_*", "*", "stack_*:live", "arn:aws-cn:lambda:cn-north-1:123456789012:function:stack_*:$LATEST"],
)
def test_owners_are_a_pattern_if_they_are_no_object(pattern: str) -> None:
    assert load_settings({**MINIMAL, "MCP_OWNERS": f" {pattern} "}).owners == pattern


def test_the_mode_is_bearer_if_only_an_issuer_is_set() -> None:
    settings = load_settings({"MCP_TOKEN_ISSUER": "https://id.test/"})
    assert (settings.auth_mode, settings.derives_audience) == (AuthMode.BEARER, True)
    assert load_settings({**MINIMAL, "MCP_TOKEN_ISSUER": "https://id.test/"}).auth_mode is AuthMode.JWT


@pytest.mark.parametrize("given", [{}, {"MCP_PRINCIPAL_CONTEXT_KEY": ""}], ids=str)
def test_the_principal_has_the_key_that_aws_gives_it(given: dict[str, str]) -> None:
    assert load_settings({"MCP_AUTH_MODE": "lambda", **given}).principal_context_key == "principalId"


def test_states_are_issued_by_their_audience_unless_an_issuer_is_set() -> None:
    assert load_settings({**MINIMAL, "MCP_AUDIENCE": "https://x.test"}).state_issuer == "https://x.test"
    assert load_settings({**MINIMAL, "MCP_ISSUER": "urn:x"}).state_issuer == "urn:x"
    with pytest.raises(SettingsError) as refused:
        _ = load_settings(MINIMAL).state_issuer
    assert refused.value.setting == "MCP_AUDIENCE"


def test_the_keys_of_a_lambda_authorizers_context_are_configured() -> None:
    settings = load_settings(LAMBDA)
    assert (settings.principal_context_key, settings.scope_context_key) == ("user", "scope")


WRONG: list[tuple[dict[str, str], str]] = [
    ({}, "MCP_AUTH_MODE"),
    ({"MCP_AUTH_MODE": ""}, "MCP_AUTH_MODE"),
    ({"MCP_AUTH_MODE": "open"}, "MCP_AUTH_MODE"),
    ({**BEARER, "MCP_TOKEN_ISSUER": ""}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_AUDIENCE": "", "MCP_TASK_TABLE": "tasks"}, "MCP_AUDIENCE"),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_AUDIENCE": "", "MCP_TASK_TABLE": "tasks"}, "MCP_AUDIENCE"),
    *(
        ({**BEARER, "MCP_AUDIENCE": audience}, "MCP_AUDIENCE")
        for audience in ("x.test/mcp", "http://x.test/mcp", "https://x.test/mcp#", "https://x.test/mcp?a")
    ),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_ALGORITHMS": "ES256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**LAMBDA, "MCP_TOKEN_ALGORITHMS": "ES256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**LAMBDA, "MCP_TOKEN_TYPE": "at+jwt"}, "MCP_TOKEN_TYPE"),
    ({**BEARER, "MCP_TOKEN_TYPE": "JWT"}, "MCP_TOKEN_TYPE"),
    ({**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_AUDIENCE": "api"}, "MCP_TOKEN_AUDIENCE"),
    ({"MCP_AUTH_MODE": "iam", "MCP_SCOPE_PREFIX": "api/"}, "MCP_SCOPE_PREFIX"),
    *(({**BEARER, "MCP_SCOPE_PREFIX": prefix}, "MCP_SCOPE_PREFIX") for prefix in ("a b", 'a"', "é/")),
    ({**BEARER, "MCP_IAM_PRINCIPAL": "session"}, "MCP_IAM_PRINCIPAL"),
    ({"MCP_AUTH_MODE": "iam", "MCP_IAM_PRINCIPAL": "user"}, "MCP_IAM_PRINCIPAL"),
    (
        {**BEARER, "MCP_AUTH_MODE": "jwt", "MCP_TOKEN_JWKS_URI": "https://id.test/keys"},
        "MCP_TOKEN_JWKS_URI",
    ),
    ({**LAMBDA, "MCP_AUTH_MODE": "iam"}, "MCP_PRINCIPAL_CONTEXT_KEY"),
    *(
        ({**MINIMAL, "MCP_ALLOWED_ORIGINS": origins}, "MCP_ALLOWED_ORIGINS")
        for origins in ("*", "https://a.test/", "a.test", "https://a.test,null", "https://*.a.test")
    ),
    ({**MINIMAL, "MCP_SCOPE_CONTEXT_KEY": "scope"}, "MCP_SCOPE_CONTEXT_KEY"),
    ({**BEARER, "MCP_AUTH_MODE": "none"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_AUTH_MODE": "iam"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "http://id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "http://localhost.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://id.test?tenant=1"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://id.test#"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_ISSUER": "https://a@id.test"}, "MCP_TOKEN_ISSUER"),
    ({**BEARER, "MCP_TOKEN_JWKS_URI": "http://id.test/keys"}, "MCP_TOKEN_JWKS_URI"),
    ({**BEARER, "MCP_TOKEN_JWKS_URI": "file:///keys"}, "MCP_TOKEN_JWKS_URI"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "none"}, "MCP_TOKEN_ALGORITHMS"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "RS256,HS256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**BEARER, "MCP_TOKEN_ALGORITHMS": "rs256"}, "MCP_TOKEN_ALGORITHMS"),
    ({**MINIMAL, "MCP_AWS_CLIENT": "botocore"}, "MCP_AWS_CLIENT"),
    ({**MINIMAL, "MCP_TASK_LEASE_S": "14"}, "MCP_TASK_LEASE_S"),
    ({**MINIMAL, "MCP_TASK_LEASE_S": "901"}, "MCP_TASK_LEASE_S"),
    ({**MINIMAL, "MCP_MAX_OPEN_TASKS": "-1"}, "MCP_MAX_OPEN_TASKS"),
    ({**MINIMAL, "MCP_AUDIT": "hash"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "everything:shop-audit"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "principal:no such name"}, "MCP_AUDIT"),
    ({**MINIMAL, "MCP_AUDIT": "hash:shop-audit"}, "MCP_ISSUER"),
    ({**MINIMAL, "MCP_MAX_OPEN_TASKS": "101"}, "MCP_MAX_OPEN_TASKS"),
    ({**MINIMAL, "MCP_MAX_ROUNDS": "0"}, "MCP_MAX_ROUNDS"),
    ({**MINIMAL, "MCP_MAX_ROUNDS": "many"}, "MCP_MAX_ROUNDS"),
    ({**MINIMAL, "MCP_MAX_BODY_BYTES": "6291457"}, "MCP_MAX_BODY_BYTES"),
    ({**MINIMAL, "MCP_MAX_JSON_VALUES": "0"}, "MCP_MAX_JSON_VALUES"),
    *(
        ({**MINIMAL, "MCP_SERVER_CARD": name}, "MCP_SERVER_CARD")
        for name in ("1", "orders", "com.example/a/b", "com.example/", "com.example/a b", "a/" + "b" * 199)
    ),
    ({**MINIMAL, "MCP_ROUND_TTL_S": "9" * 5_000}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_ENCRYPTION": "off"}, "MCP_STATE_ENCRYPTION"),
    (
        {
            **MINIMAL,
            "MCP_STATE_ENCRYPTION": "disabled",
            "MCP_STATE_ENCRYPTION_KEY_ARN": "arn:a",
        },
        "MCP_STATE_ENCRYPTION",
    ),
    (
        {
            **MINIMAL,
            "MCP_STATE_ENCRYPTION": "disabled",
            "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS": "arn:a",
        },
        "MCP_STATE_ENCRYPTION",
    ),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:é"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_REVOKED_CERTIFICATES": ONE.upper()[:31] + "F"}, "MCP_REVOKED_CERTIFICATES"),
    ({**MINIMAL, "MCP_REVOKED_CERTIFICATES": ONE[:31]}, "MCP_REVOKED_CERTIFICATES"),
    ({**MINIMAL, "MCP_ROUND_TTL_S": "3601"}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_SIGNING": "indirect"}, "MCP_STATE_SIGNING"),
    ({**MINIMAL, "MCP_STATE_SIGNING": "delegated", "MCP_ROUND_TTL_S": "1201"}, "MCP_ROUND_TTL_S"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "TUZr"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": ":TUZr"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_STATE_PUBLIC_KEYS": "mrk-1:not Base64"}, "MCP_STATE_PUBLIC_KEYS"),
    ({**MINIMAL, "MCP_OWNERS": "{"}, "MCP_OWNERS"),
    *(
        ({**MINIMAL, "MCP_OWNERS": owners}, "MCP_OWNERS")
        for owners in ("[]", '{"a": 1}', "find", "*_*", "stack_*/live", "https://x.test/*")
    ),
]
"""Environments and the setting in the error."""


def test_the_error_names_the_invalid_setting(subtests: pytest.Subtests) -> None:
    for environment, setting in WRONG:
        with subtests.test(str(environment)[:200]):
            with pytest.raises(SettingsError) as refused:
                load_settings(environment)
            assert refused.value.setting == setting


@pytest.mark.parametrize("issuer", ["https://id.test/", "http://127.0.0.1:8000", "http://localhost:8000/x"])
def test_bearer_mode_requires_an_issuer_with_public_keys(issuer: str) -> None:
    settings = load_settings({**BEARER, "MCP_TOKEN_ISSUER": issuer})
    assert settings.token_issuer == issuer
    assert settings.token_algorithms == ("RS256", "ES256")


KEY_ARN = "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"


def test_key_arns_are_read_in_the_order_of_the_settings() -> None:
    other = KEY_ARN.replace("mrk-1", "mrk-2")
    settings = load_settings({**MINIMAL, "MCP_STATE_KEY_ARN": KEY_ARN, "MCP_TRUSTED_STATE_KEY_ARNS": other})
    assert settings.key_arns("state_key_arn", "trusted_state_key_arns") == (KEY_ARN, other)
    assert load_settings(MINIMAL).key_arns("state_key_arn", "trusted_state_key_arns") == ()


@pytest.mark.parametrize(
    "key",
    [
        "alias/state",
        "arn:aws:kms:eu-west-1:123456789012:alias/state",
        "1234abcd-12ab-34cd-56ef-1234567890ab",
        "arn:aws:kms:eu-west-1:123456789012:key/",
        f"{KEY_ARN}/x",
    ],
)
@pytest.mark.parametrize("setting", ["MCP_STATE_KEY_ARN", "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS"])
def test_a_key_without_a_key_arn_is_refused_when_it_is_needed(key: str, setting: str) -> None:
    settings = load_settings({**MINIMAL, setting: key})
    with pytest.raises(SettingsError) as refused:
        settings.key_arns(setting.removeprefix("MCP_").lower())
    assert refused.value.setting == setting


def test_a_missing_setting_is_named_when_it_is_needed() -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(MINIMAL).required("state_key_arn")
    assert refused.value.setting == "MCP_STATE_KEY_ARN"
