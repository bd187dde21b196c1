from __future__ import annotations

import sys

import pytest

from mcp_roundtrip.aws.kms import pinned_half
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.aws_ports import owner_function
from mcp_roundtrip.deployment.needed_settings import missing_settings
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import key_arns
from mcp_roundtrip.deployment.wiring import make_ports
from mcp_roundtrip.internal_errors import SettingsError
from messages.cases import mistake, mistakes

KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"


def given(**settings: str) -> None:
    load_settings({"MCP_AUTH_MODE": "none"} | {f"MCP_{name}": value for name, value in settings.items()})


@mistake(SettingsError)
def an_endpoint_that_is_no_url() -> None:
    environment = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL_KMS": "kms.test"}
    AwsClients(environment=environment).client("kms")


@mistake(SettingsError)
def a_service_without_an_endpoint_in_another_partition() -> None:
    environment = {"AWS_DEFAULT_REGION": "cn-north-1", "AWS_ENDPOINT_URL_SQS": "https://sqs.test"}
    AwsClients(environment=environment).client("kms")


@mistake(SettingsError)
def a_setting_that_a_feature_needs() -> None:
    [missing] = missing_settings({"tasks": ["wait"]}, {"task_table"})
    raise missing.error


@mistake(SettingsError)
def traces_without_opentelemetry() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mcp_roundtrip.observing.opentelemetry_tracer", None)
        make_ports(load_settings({"MCP_AUTH_MODE": "none", "MCP_TRACES": "on"}))


mistakes(
    __name__,
    SettingsError,
    {
        "no mode": lambda: load_settings({}),
        "another mode": lambda: given(AUTH_MODE="cognito"),
        "another choice where there is a default": lambda: given(STATE_SIGNING="kms"),
        "fips endpoints": lambda: AwsClients(environment={"AWS_USE_FIPS_ENDPOINT": "true"}).client("kms"),
        "a profile in place of credentials": lambda: AwsClients(
            environment={"AWS_DEFAULT_REGION": "eu-west-1"}
        ).client("kms"),
        "no region": lambda: AwsClients(environment={}).client("kms"),
        "a setting that is needed now": lambda: load_settings({"MCP_AUTH_MODE": "none"}).required("issuer"),
        "an audience that the event does not tell": lambda: load_settings({"MCP_AUTH_MODE": "none"}).required(
            "audience"
        ),
        "an issuer that is missing": lambda: given(AUTH_MODE="bearer"),
        "a setting of another mode": lambda: given(TOKEN_JWKS_URI="https://id.example/keys"),
        "an audience with a query": lambda: given(
            AUTH_MODE="bearer", TOKEN_ISSUER="https://id.example", AUDIENCE="https://mcp.example/mcp?a=1"
        ),
        "an alias of a key": lambda: key_arns(
            load_settings({"MCP_AUTH_MODE": "none", "MCP_STATE_KEY_ARN": "alias/states"}), "state_key_arn"
        ),
        "keys for encryption that is disabled": lambda: given(
            STATE_ENCRYPTION="disabled", STATE_ENCRYPTION_KEY_ARN=KEY
        ),
        "rounds longer than a certificate": lambda: given(STATE_SIGNING="delegated", ROUND_TTL_S="999999"),
        "no rounds": lambda: given(MAX_ROUNDS="0"),
        "audit records without a log group": lambda: given(AUDIT="hash"),
        "delivery through a queue that is missing": lambda: given(
            TASK_DELIVERY="queue", TASK_WORKER="arn:aws:lambda:eu-west-1:123456789012:function:worker:7"
        ),
        "a misspelt name in a line": lambda: load_settings(
            {"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_MAX_ROUND=5"}
        ),
        "a name in two lines": lambda: load_settings(
            {"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_AUTH_MODE=jwt"}
        ),
        "a line without a value": lambda: load_settings(
            {"MCP_SETTINGS": "MCP_AUTH_MODE=none\nMCP_ISSUER shop"}
        ),
        "settings without lines": lambda: load_settings({"MCP_SETTINGS": ""}),
        "owners that are no json": lambda: given(OWNERS='{"find": Find}'),
        "a key without its public half": lambda: pinned_half(KEY, {}),
        "a public key of another kind": lambda: pinned_half(KEY, {KEY.rpartition("/")[2]: b"MFkw"}),
        "an owner without a function": lambda: owner_function(
            load_settings({"MCP_AUTH_MODE": "none", "MCP_OWNERS": "{}"}), "find"
        ),
    },
)
