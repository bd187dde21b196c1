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
from messages.cases import mistakes, says

KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"


def given(**settings: str) -> None:
    load_settings({"MCP_AUTH_MODE": "none"} | {f"MCP_{name}": value for name, value in settings.items()})


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


@says(
    "MCP_TASK_TABLE: is not set, and calls of wait cannot become tasks; set it to the name of the stack's "
    "task table",
    SettingsError,
)
def a_setting_that_a_feature_needs() -> None:
    [missing] = missing_settings({"tasks": ["wait"]}, {"task_table"})
    raise missing.error


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


mistakes(
    __name__,
    SettingsError,
    {
        "no mode": (
            lambda: load_settings({}),
            "MCP_AUTH_MODE: must be one of none, bearer, jwt, lambda, iam; it has a default only with "
            "MCP_TOKEN_ISSUER: bearer",
        ),
        "another mode": (
            lambda: given(AUTH_MODE="cognito"),
            "MCP_AUTH_MODE: must be one of none, bearer, jwt, lambda, iam",
        ),
        "another choice where there is a default": (
            lambda: given(STATE_SIGNING="kms"),
            "MCP_STATE_SIGNING: must be one of direct, delegated",
        ),
        "fips endpoints": (
            lambda: load_settings({"MCP_AUTH_MODE": "none", "AWS_USE_FIPS_ENDPOINT": "true"}),
            "MCP_AWS_CLIENT: must be boto3 if AWS_USE_FIPS_ENDPOINT is set; set it to boto3, or remove "
            "AWS_USE_FIPS_ENDPOINT",
        ),
        "a region of another partition": (
            lambda: load_settings({"MCP_AUTH_MODE": "none", "AWS_DEFAULT_REGION": "cn-north-1"}),
            "MCP_AWS_CLIENT: must be boto3 in cn-north-1, a Region of another partition than aws; set it to "
            "boto3",
        ),
        "a profile in place of credentials": (
            lambda: AwsClients(environment={"AWS_DEFAULT_REGION": "eu-west-1"}).client("kms"),
            "MCP_AWS_CLIENT: is signed, and no credentials are in the environment variables that Lambda "
            "sets; set it to boto3, or correct the environment",
        ),
        "no region": (
            lambda: AwsClients(environment={}).client("kms"),
            "MCP_AWS_CLIENT: is signed, and AWS_DEFAULT_REGION is not set; set it to boto3, or correct the "
            "environment",
        ),
        "a setting that is needed now": (
            lambda: load_settings({"MCP_AUTH_MODE": "none"}).required("issuer"),
            "MCP_ISSUER: is not set; set it in the function's environment",
        ),
        "an audience that the event does not tell": (
            lambda: load_settings({"MCP_AUTH_MODE": "none"}).required("audience"),
            "MCP_AUDIENCE: is not set, and this event does not tell it; set it to the URI that clients use",
        ),
        "an issuer that is missing": (
            lambda: given(AUTH_MODE="bearer"),
            "MCP_TOKEN_ISSUER: is not set; set it in the function's environment",
        ),
        "a setting of another mode": (
            lambda: given(TOKEN_JWKS_URI="https://id.example/keys"),
            "MCP_TOKEN_JWKS_URI: is set, and MCP_AUTH_MODE is none; remove it, or use bearer",
        ),
        "an issuer without https": (
            lambda: given(AUTH_MODE="bearer", TOKEN_ISSUER="http://id.example"),
            "MCP_TOKEN_ISSUER: must be an https URL without a fragment, and an issuer's without a query",
        ),
        "keys without https": (
            lambda: given(AUTH_MODE="bearer", TOKEN_JWKS_URI="http://id.example/keys"),
            "MCP_TOKEN_JWKS_URI: must be an https URL without a fragment, and an issuer's without a query",
        ),
        "an audience with a query": (
            lambda: given(
                AUTH_MODE="bearer", TOKEN_ISSUER="https://id.example", AUDIENCE="https://mcp.example/mcp?a=1"
            ),
            "MCP_AUDIENCE: must be an https URL without a query and a fragment",
        ),
        "an algorithm that does not sign": (
            lambda: given(AUTH_MODE="bearer", TOKEN_ALGORITHMS="none"),
            "MCP_TOKEN_ALGORITHMS: must be among ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, "
            "RS384, RS512",
        ),
        "a scope prefix with a space": (
            lambda: given(AUTH_MODE="bearer", SCOPE_PREFIX="orders api/"),
            "MCP_SCOPE_PREFIX: must be the start of a scope, without spaces and quotes",
        ),
        "an alias of a key": (
            lambda: key_arns(
                load_settings({"MCP_AUTH_MODE": "none", "MCP_STATE_KEY_ARN": "alias/states"}), "state_key_arn"
            ),
            "MCP_STATE_KEY_ARN: must be the ARN of a KMS key, and not an alias",
        ),
        "keys for encryption that is disabled": (
            lambda: given(STATE_ENCRYPTION="disabled", STATE_ENCRYPTION_KEY_ARN=KEY),
            "MCP_STATE_ENCRYPTION: is disabled, and there are keys to encrypt with; remove one of them",
        ),
        "rounds longer than a certificate": (
            lambda: given(STATE_SIGNING="delegated", ROUND_TTL_S="999999"),
            "MCP_ROUND_TTL_S: must be at most 1200 with MCP_STATE_SIGNING delegated",
        ),
        "no rounds": (lambda: given(MAX_ROUNDS="0"), "MCP_MAX_ROUNDS: must be a whole number of at least 1"),
        "more open tasks than a call can read": (
            lambda: given(MAX_OPEN_TASKS="101"),
            "MCP_MAX_OPEN_TASKS: must be a whole number from 0 to 100",
        ),
        "audit records without a log group": (
            lambda: given(AUDIT="hash"),
            "MCP_AUDIT: must be principal or hash, a colon, and the name of a log group",
        ),
        "a card without a domain": (
            lambda: given(SERVER_CARD="1"),
            "MCP_SERVER_CARD: must be a reverse domain name, a slash and a name, such as com.example/weather",
        ),
        "a body limit above that of lambda": (
            lambda: given(MAX_BODY_BYTES="99999999"),
            "MCP_MAX_BODY_BYTES: must be a whole number from 1 to 6291456",
        ),
        "an origin with a path": (
            lambda: given(ALLOWED_ORIGINS="https://app.example/page"),
            "MCP_ALLOWED_ORIGINS: must be origins such as https://app.example",
        ),
        "a worker by name": (
            lambda: given(TASK_WORKER="worker"),
            "MCP_TASK_WORKER: must be the ARN of a Lambda function or the URL of a queue",
        ),
        "a queue by arn": (
            lambda: given(TASK_QUEUE="arn:aws:sqs:us-east-1:000000000000:tasks"),
            "MCP_TASK_QUEUE: must be the URL of a queue",
        ),
        "another delivery": (
            lambda: given(TASK_DELIVERY="sqs"),
            "MCP_TASK_DELIVERY: must be one of invoke, queue",
        ),
        "delivery through a queue that is missing": (
            lambda: given(
                TASK_DELIVERY="queue", TASK_WORKER="arn:aws:lambda:eu-west-1:123456789012:function:worker:7"
            ),
            "MCP_TASK_QUEUE: is not set; set it in the function's environment",
        ),
        "a misspelt name in a line": (
            lambda: load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_MAX_ROUND=5"}),
            "MCP_SETTINGS: names MCP_MAX_ROUND, which this version of the package does not have; check the "
            "name, or run `mcp-roundtrip upgrade` if the platform has another version than the package",
        ),
        "a name in two lines": (
            lambda: load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_AUTH_MODE=jwt"}),
            "MCP_SETTINGS: names MCP_AUTH_MODE twice; remove one of the lines",
        ),
        "a line without a value": (
            lambda: load_settings({"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_ISSUER shop"}),
            "MCP_SETTINGS: must hold lines such as MCP_ISSUER=shop; line 2 is none",
        ),
        "settings without lines": (
            lambda: load_settings({"MCP_SETTINGS": ""}),
            "MCP_SETTINGS: is empty; set it to the output Settings of the platform, or remove it",
        ),
        "an id that is not of a certificate": (
            lambda: given(REVOKED_CERTIFICATES="first"),
            "MCP_REVOKED_CERTIFICATES: must hold 32 lower-case hexadecimal digits for each",
        ),
        "public keys without ids": (
            lambda: given(STATE_PUBLIC_KEYS="MFkw"),
            "MCP_STATE_PUBLIC_KEYS: must hold <key id>:<Base64>, comma-separated",
        ),
        "owners that are no json": (
            lambda: given(OWNERS='{"find": Find}'),
            "MCP_OWNERS: must be a JSON object from owners to functions (not JSON: Expecting value at "
            "character 9)",
        ),
        "owners without names or a pattern": (
            lambda: given(OWNERS="find=Find"),
            "MCP_OWNERS: must be a JSON object with one function name or ARN for each owner, or a function's "
            "name or ARN with one * in it",
        ),
        "an owner with several functions": (
            lambda: given(OWNERS='{"find": ["Find"]}'),
            "MCP_OWNERS: must be a JSON object with one function name or ARN for each owner, or a function's "
            "name or ARN with one * in it",
        ),
        "a key without its public half": (
            lambda: pinned_key(KEY, {}),
            "MCP_STATE_PUBLIC_KEYS: has no public key for "
            "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab; add it as <key "
            "id>:<Base64>",
        ),
        "a public key of another kind": (
            lambda: pinned_key(KEY, {KEY.rpartition("/")[2]: b"MFkw"}),
            "MCP_STATE_PUBLIC_KEYS: has no P-256 key for "
            "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab; copy it from `aws "
            "kms get-public-key`",
        ),
        "an owner without a function": (
            lambda: _owner_function(load_settings({"MCP_AUTH_MODE": "none", "MCP_OWNERS": "{}"}), "find"),
            "MCP_OWNERS: names no function for 'find'; add it, or run `make catalog`",
        ),
    },
)
