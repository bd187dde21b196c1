"""Settings of a deployment: environment variables."""

from __future__ import annotations

import sys

import pytest

from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.kms import pinned_key
from mcp_roundtrip.deployment.missing_settings import missing_settings
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import key_arns
from mcp_roundtrip.deployment.wiring import _owner_function, _tracer
from mcp_roundtrip.internal_errors import SettingsError
from messages.cases import says

KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"


def given(**settings: str) -> None:
    load_settings({"MCP_AUTH_MODE": "none"} | {f"MCP_{name}": value for name, value in settings.items()})


@says(
    "MCP_AUTH_MODE: must be one of none, bearer, jwt, lambda, iam; it has a default only with "
    "MCP_TOKEN_ISSUER: bearer",
    SettingsError,
)
def no_mode() -> None:
    load_settings({})


@says("MCP_AUTH_MODE: must be one of none, bearer, jwt, lambda, iam", SettingsError)
def another_mode() -> None:
    given(AUTH_MODE="cognito")


@says("MCP_STATE_SIGNING: must be one of direct, delegated", SettingsError)
def another_choice_where_there_is_a_default() -> None:
    given(STATE_SIGNING="kms")


@says(
    "MCP_AWS_CLIENT: must be boto3 if AWS_USE_FIPS_ENDPOINT is set; set it to boto3, or remove "
    "AWS_USE_FIPS_ENDPOINT",
    SettingsError,
)
def fips_endpoints() -> None:
    load_settings({"MCP_AUTH_MODE": "none", "AWS_USE_FIPS_ENDPOINT": "true"})


@says(
    "MCP_AWS_CLIENT: must be boto3 in cn-north-1, a Region of another partition than aws; set it to boto3",
    SettingsError,
)
def a_region_of_another_partition() -> None:
    load_settings({"MCP_AUTH_MODE": "none", "AWS_DEFAULT_REGION": "cn-north-1"})


@says(
    "MCP_AWS_CLIENT: is signed, and no credentials are in the environment variables that Lambda sets; "
    "set it to boto3, or correct the environment",
    SettingsError,
)
def a_profile_in_place_of_credentials() -> None:
    AwsClients(environment={"AWS_DEFAULT_REGION": "eu-west-1"}).client("kms")


@says(
    "MCP_AWS_CLIENT: is signed, and AWS_DEFAULT_REGION is not set; "
    "set it to boto3, or correct the environment",
    SettingsError,
)
def no_region() -> None:
    AwsClients(environment={}).client("kms")


@says(
    "MCP_AWS_CLIENT: is signed, and the endpoint of kms is not a URL that consists of a host and a path; "
    "set it to boto3, or correct the environment",
    SettingsError,
)
def an_endpoint_that_is_no_url() -> None:
    environment = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL_KMS": "kms.test"}
    AwsClients(environment=environment).client("kms")


@says(
    "MCP_AWS_CLIENT: is signed, and cn-north-1 is a Region of another partition than aws; "
    "set it to boto3, or correct the environment",
    SettingsError,
)
def a_service_without_an_endpoint_in_another_partition() -> None:
    environment = {"AWS_DEFAULT_REGION": "cn-north-1", "AWS_ENDPOINT_URL_SQS": "https://sqs.test"}
    AwsClients(environment=environment).client("kms")


@says("MCP_ISSUER: is not set; set it in the function's environment", SettingsError)
def a_setting_that_is_needed_now() -> None:
    load_settings({"MCP_AUTH_MODE": "none"}).required("issuer")


@says(
    "MCP_AUDIENCE: is not set, and this event does not tell it; set it to the URI that clients use",
    SettingsError,
)
def an_audience_that_the_event_does_not_tell() -> None:
    load_settings({"MCP_AUTH_MODE": "none"}).required("audience")


@says("MCP_TOKEN_ISSUER: is not set; set it in the function's environment", SettingsError)
def an_issuer_that_is_missing() -> None:
    given(AUTH_MODE="bearer")


@says("MCP_TOKEN_JWKS_URI: is set, and MCP_AUTH_MODE is none; remove it, or use bearer", SettingsError)
def a_setting_of_another_mode() -> None:
    given(TOKEN_JWKS_URI="https://id.example/keys")


@says(
    "MCP_TOKEN_ISSUER: must be an https URL without a fragment, and an issuer's without a query",
    SettingsError,
)
def an_issuer_without_https() -> None:
    given(AUTH_MODE="bearer", TOKEN_ISSUER="http://id.example")


@says(
    "MCP_TOKEN_JWKS_URI: must be an https URL without a fragment, and an issuer's without a query",
    SettingsError,
)
def keys_without_https() -> None:
    given(AUTH_MODE="bearer", TOKEN_JWKS_URI="http://id.example/keys")


@says("MCP_AUDIENCE: must be an https URL without a query and a fragment", SettingsError)
def an_audience_with_a_query() -> None:
    given(AUTH_MODE="bearer", TOKEN_ISSUER="https://id.example", AUDIENCE="https://mcp.example/mcp?a=1")


@says(
    "MCP_TOKEN_ALGORITHMS: must be among ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, "
    "RS384, RS512",
    SettingsError,
)
def an_algorithm_that_does_not_sign() -> None:
    given(AUTH_MODE="bearer", TOKEN_ALGORITHMS="none")


@says("MCP_SCOPE_PREFIX: must be the start of a scope, without spaces and quotes", SettingsError)
def a_scope_prefix_with_a_space() -> None:
    given(AUTH_MODE="bearer", SCOPE_PREFIX="orders api/")


@says("MCP_STATE_KEY_ARN: must be the ARN of a KMS key, and not an alias", SettingsError)
def an_alias_of_a_key() -> None:
    key_arns(load_settings({"MCP_AUTH_MODE": "none", "MCP_STATE_KEY_ARN": "alias/states"}), "state_key_arn")


@says(
    "MCP_STATE_ENCRYPTION: is disabled, and there are keys to encrypt with; remove one of them",
    SettingsError,
)
def keys_for_encryption_that_is_disabled() -> None:
    given(STATE_ENCRYPTION="disabled", STATE_ENCRYPTION_KEY_ARN=KEY)


@says("MCP_ROUND_TTL_S: must be at most 1200 with MCP_STATE_SIGNING delegated", SettingsError)
def rounds_longer_than_a_certificate() -> None:
    given(STATE_SIGNING="delegated", ROUND_TTL_S="999999")


@says("MCP_MAX_ROUNDS: must be a whole number of at least 1", SettingsError)
def no_rounds() -> None:
    given(MAX_ROUNDS="0")


@says("MCP_MAX_OPEN_TASKS: must be a whole number from 0 to 100", SettingsError)
def more_open_tasks_than_a_call_can_read() -> None:
    given(MAX_OPEN_TASKS="101")


@says("MCP_AUDIT: must be principal or hash, a colon, and the name of a log group", SettingsError)
def audit_records_without_a_log_group() -> None:
    given(AUDIT="hash")


@says(
    "MCP_SERVER_CARD: must be a reverse domain name, a slash and a name, such as com.example/weather",
    SettingsError,
)
def a_card_without_a_domain() -> None:
    given(SERVER_CARD="1")


@says("MCP_MAX_BODY_BYTES: must be a whole number from 1 to 6291456", SettingsError)
def a_body_limit_above_that_of_lambda() -> None:
    given(MAX_BODY_BYTES="99999999")


@says("MCP_ALLOWED_ORIGINS: must be origins such as https://app.example", SettingsError)
def an_origin_with_a_path() -> None:
    given(ALLOWED_ORIGINS="https://app.example/page")


@says("MCP_TASK_WORKER: must be the ARN of a Lambda function or the URL of a queue", SettingsError)
def a_worker_by_name() -> None:
    given(TASK_WORKER="worker")


@says("MCP_TASK_QUEUE: must be the URL of a queue", SettingsError)
def a_queue_by_arn() -> None:
    given(TASK_QUEUE="arn:aws:sqs:us-east-1:000000000000:tasks")


@says("MCP_TASK_DELIVERY: must be one of invoke, queue", SettingsError)
def another_delivery() -> None:
    given(TASK_DELIVERY="sqs")


@says("MCP_TASK_QUEUE: is not set; set it in the function's environment", SettingsError)
def delivery_through_a_queue_that_is_missing() -> None:
    given(TASK_DELIVERY="queue", TASK_WORKER="arn:aws:lambda:eu-west-1:123456789012:function:worker:7")


@says(
    "MCP_SETTINGS: names MCP_MAX_ROUND, which this version of the package does not have; check the name, "
    "or run `mcp-roundtrip upgrade` if the platform has another version than the package",
    SettingsError,
)
def a_misspelt_name_in_a_line() -> None:
    load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_MAX_ROUND=5"})


@says("MCP_SETTINGS: names MCP_AUTH_MODE twice; remove one of the lines", SettingsError)
def a_name_in_two_lines() -> None:
    load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_AUTH_MODE=jwt"})


@says("MCP_SETTINGS: must hold lines such as MCP_ISSUER=shop; line 2 is none", SettingsError)
def a_line_without_a_value() -> None:
    load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_ISSUER shop"})


@says(
    "MCP_SETTINGS: is empty; set it to the output Settings of the platform, or remove it",
    SettingsError,
)
def settings_without_lines() -> None:
    load_settings({"MCP_SETTINGS": ""})


@says("MCP_REVOKED_CERTIFICATES: must hold 32 lower-case hexadecimal digits for each", SettingsError)
def an_id_that_is_not_of_a_certificate() -> None:
    given(REVOKED_CERTIFICATES="first")


@says("MCP_STATE_PUBLIC_KEYS: must hold <key id>:<Base64>, comma-separated", SettingsError)
def public_keys_without_ids() -> None:
    given(STATE_PUBLIC_KEYS="MFkw")


@says(
    "MCP_OWNERS: must be a JSON object from owners to functions (not JSON: Expecting value at character 9)",
    SettingsError,
)
def owners_that_are_no_json() -> None:
    given(OWNERS='{"find": Find}')


@says(
    "MCP_OWNERS: must be a JSON object with one function name or ARN for each owner, or a function's name "
    "or ARN with one * in it",
    SettingsError,
)
def owners_without_names_or_a_pattern() -> None:
    given(OWNERS="find=Find")


@says(
    "MCP_OWNERS: must be a JSON object with one function name or ARN for each owner, or a function's name "
    "or ARN with one * in it",
    SettingsError,
)
def an_owner_with_several_functions() -> None:
    given(OWNERS='{"find": ["Find"]}')


@says(
    "MCP_TASK_TABLE: is not set, and calls of wait cannot become tasks; set it to the name of the stack's "
    "task table",
    SettingsError,
)
def a_setting_that_a_feature_needs() -> None:
    [missing] = missing_settings({"tasks": ["wait"]}, {"task_table"})
    raise missing.error


@says(
    "MCP_STATE_PUBLIC_KEYS: has no public key for "
    "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab; add it as <key "
    "id>:<Base64>",
    SettingsError,
)
def a_key_without_its_public_half() -> None:
    pinned_key(KEY, {})


@says(
    "MCP_STATE_PUBLIC_KEYS: has no P-256 key for "
    "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab; copy it from `aws "
    "kms get-public-key`",
    SettingsError,
)
def a_public_key_of_another_kind() -> None:
    pinned_key(KEY, {KEY.rpartition("/")[2]: b"MFkw"})


@says("MCP_OWNERS: names no function for 'find'; add it, or run `make catalog`", SettingsError)
def an_owner_without_a_function() -> None:
    _owner_function(load_settings({"MCP_AUTH_MODE": "none", "MCP_OWNERS": "{}"}), "find")


@says(
    "MCP_TRACES: is on, and OpenTelemetry is not installed (import of "
    "mcp_roundtrip.observing.tracer halted; None in sys.modules); add the layer of ADOT, or install "
    "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http",
    SettingsError,
)
def traces_without_opentelemetry() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mcp_roundtrip.observing.tracer", None)
        _tracer(load_settings({"MCP_AUTH_MODE": "none", "MCP_TRACES": "on"}))
