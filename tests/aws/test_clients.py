"""Which client is created for an environment, and its endpoints, with botocore as the oracle."""

import logging
import os
import re
from typing import Any

import pytest
from botocore.endpoint_provider import EndpointProvider
from botocore.session import get_session

from mcp_roundtrip.aws.boto3_client import Boto3Client, Boto3Clients, Boto3InvokeClient
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.connections import parse_endpoint
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.signed_client import AwsClients, SignedClient, find_endpoint
from mcp_roundtrip.aws.wire_formats import SERVICES
from mcp_roundtrip.internal_errors import SettingsError
from support.aws_clients import CLIENTS, KINDS
from support.interpreters import run_program
from support.scripted_server import respond, scripted

FUNCTION = {
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "token",
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""The variables of a Lambda function, isolated from the files of a developer."""
SNAP_START = {
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:9001/2021-04-23/credentials",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token",
}
WEB_IDENTITY = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}


@pytest.mark.parametrize("environment", [FUNCTION, SNAP_START, FUNCTION | WEB_IDENTITY])
def test_a_function_does_without_boto3(environment):
    clients = AwsClients(environment=environment)
    for service in SERVICES:
        assert type(clients.client(service)) is SignedClient
    assert type(clients.invoke_client()) is SignedClient


@pytest.fixture
def function(monkeypatch):
    for name, value in FUNCTION.items():
        monkeypatch.setenv(name, value)


UNSUPPORTED = {
    "no region": {**FUNCTION, "AWS_DEFAULT_REGION": ""},
    "endpoint": {**FUNCTION, "AWS_ENDPOINT_URL_LAMBDA": "http://user:secret@x.test"},
    "half a key": {**FUNCTION, "AWS_SECRET_ACCESS_KEY": ""},
}


@pytest.mark.parametrize("environment", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_the_error_of_what_only_boto3_can_do_names_the_setting_for_it(environment):
    clients = AwsClients(environment=environment)
    for create in (clients.invoke_client, lambda: clients.client("lambda")):
        with pytest.raises(SettingsError) as refused:
            create()
        assert refused.value.setting == "MCP_AWS_CLIENT"
        assert "boto3" in str(refused.value)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *((name, "http://proxy.test") for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy")),
        *(("AWS_PROFILE", "p"), ("AWS_DEFAULT_PROFILE", "p"), ("AWS_CONFIG_FILE", "/opt/config")),
        *(("AWS_USE_FIPS_ENDPOINT", "true"), ("AWS_USE_DUALSTACK_ENDPOINT", "True")),
        *(("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), ("AWS_ACCOUNT_ID_ENDPOINT_MODE", "Required")),
    ],
)
def test_an_environment_whose_calls_only_boto3_can_make_is_refused_by_its_variable(variable, value):
    with pytest.raises(SettingsError, match=rf"{variable} .*boto3") as refused:
        AwsClients(environment={**FUNCTION, variable: value}).client("kms")
    assert refused.value.setting == "MCP_AWS_CLIENT"


@pytest.mark.parametrize(
    "others",
    [
        *({"HTTPS_PROXY": ""}, {"NO_PROXY": "x.test"}, {"AWS_USE_FIPS_ENDPOINT": "False"}),
        *({"AWS_CONFIG_FILE": "/dev/null"}, {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "preferred"}),
    ],
    ids=str,
)
def test_other_variables_of_sdks_need_no_boto3(others):
    AwsClients(environment={**FUNCTION, **others}).client("kms")


def test_a_deployment_can_choose_boto3(function):
    clients = Boto3Clients()
    assert type(clients.client("kms")) is Boto3Client
    assert type(clients.invoke_client()) is Boto3InvokeClient


@pytest.mark.parametrize("kind", KINDS)
def test_the_timeouts_and_the_attempts_fit_into_a_request_and_each_attempt_is_counted(
    function, monkeypatch, kind
):
    counted = []
    failing = respond(500, {"__type": "InternalFailure"})
    with scripted(failing, failing, failing) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        clients = CLIENTS[kind](on_request=lambda *request: counted.append(request))
        client: Any = clients.client("kms")
        with pytest.raises(AwsError):
            client.call("GetPublicKey", KeyId="k")
    assert counted == [("kms", "GetPublicKey")] * len(server.requests) == [("kms", "GetPublicKey")] * 3
    if isinstance(client, SignedClient):
        assert (client.connections._connect_timeout_s, client.read_timeout_s) == (1, 2)
    else:
        config = client.client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (1, 2)


IMPORTS = """
import sys
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.aws.lambda_and_sqs import invoke_owner
assert invoke_owner(AwsClients().invoke_client(), "weather", {}, {}, 9) == {}
for service, operation in (("kms", "Sign"), ("dynamodb", "GetItem"), ("sqs", "SendMessage")):
    AwsClients().client(service).call(operation)
print(*sys.modules)
"""

SLOW = ("boto3", "botocore", "urllib3", "urllib.request", "asyncio", "secrets")


def test_signed_calls_import_no_slow_module():
    with scripted() as server:
        done = run_program(IMPORTS, **FUNCTION, AWS_ENDPOINT_URL=server.url)
    loaded = set(done.stdout.split())
    assert [name for name in SLOW if name in loaded] == []
    assert "socket" in loaded


SESSION: Any = get_session()
LOADER = SESSION.get_component("data_loader")
PARTITIONS = LOADER.load_data("partitions")


@pytest.mark.parametrize("service", SERVICES)
def test_botocore_finds_the_same_endpoint_in_every_region(service):
    oracle = EndpointProvider(LOADER.load_service_model(service, "endpoint-rule-set-1"), PARTITIONS)
    [regions] = [each["regions"] for each in PARTITIONS["partitions"] if each["id"] == "aws"]
    regions = regions.keys() - {"aws-global"} | {*SESSION.get_available_regions(service), "eu-middle-7"}
    found = {region: find_endpoint(service, region, {}).geturl() for region in regions}
    assert found == {region: oracle.resolve_endpoint(Region=region).url for region in regions}
    assert len(found) > 30


CONFIGURED = {
    "for the service": ({"AWS_ENDPOINT_URL_KMS": "https://x.test/kms/"}, "https://x.test/kms/"),
    "for all services": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:2"}, "http://127.0.0.1:2"),
    "for both": (
        {"AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1", "AWS_ENDPOINT_URL": "http://127.0.0.1:2"},
        "http://127.0.0.1:1",
    ),
    "for another service": ({"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1"}, None),
    "empty": ({"AWS_ENDPOINT_URL_KMS": "", "AWS_ENDPOINT_URL": ""}, None),
}


@pytest.mark.parametrize(("environment", "url"), CONFIGURED.values(), ids=CONFIGURED)
def test_a_configured_endpoint_is_used_as_botocore_uses_it(monkeypatch, environment, url):
    endpoint = find_endpoint("kms", "eu-west-1", environment)
    assert endpoint.geturl() == (url or "https://kms.eu-west-1.amazonaws.com")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
    oracle = SESSION.create_client("kms", **keys)
    assert oracle.meta.endpoint_url == endpoint.geturl()
    oracle.close()


def test_a_region_of_another_partition_needs_an_endpoint_for_each_service():
    others = {name for each in PARTITIONS["partitions"] if each["id"] != "aws" for name in each["regions"]}
    assert others >= {"cn-north-1", "us-gov-west-1", "eusc-de-east-1", "us-iso-east-1"}
    environment = {"AWS_ENDPOINT_URL_SQS": "https://sqs.test", "AWS_ENDPOINT_URL": ""}
    for region in (*others, "aws-global"):
        assert find_endpoint("sqs", region, environment).geturl() == "https://sqs.test"
        with pytest.raises(SettingsError) as refused:
            find_endpoint("kms", region, environment)
        assert refused.value.setting == "MCP_AWS_CLIENT"


VPC_ENDPOINT = "vpce-1.kms.eu-west-1.vpce.amazonaws.com"
URLS = {
    "http://127.0.0.1:4566": ("127.0.0.1", 4566, ""),
    f"https://{VPC_ENDPOINT}": (VPC_ENDPOINT, None, ""),
    "http://[::1]:8000/a/b/": ("::1", 8000, "/a/b/"),
}


@pytest.mark.parametrize(("url", "parts"), URLS.items())
def test_a_url_has_the_parts_of_an_endpoint(url, parts):
    endpoint = parse_endpoint(url)
    assert endpoint is not None
    assert (endpoint.hostname, endpoint.port, endpoint.path) == parts


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "ftp://x", "http://", "http://u@x", "http://x?q", "http://x#f", "http://x:0"),
        *("http://x\r\nHost: y", "http://x y", "http://x/\n", "//x", "http://x:", "http://é.test"),
        *("http://x:65536", "http://[::", "http://[:.]"),
    ],
)
def test_another_url_is_no_endpoint(url):
    assert parse_endpoint(url) is None


@pytest.mark.parametrize("kind", KINDS)
def test_no_body_and_no_token_of_a_request_is_logged_at_level_debug(function, monkeypatch, caplog, kind):
    caplog.set_level(logging.DEBUG)
    with scripted(respond(200, {})) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        client = CLIENTS[kind]().client("dynamodb")
        DynamoStore(client, "tasks").put_new({"pk": "p", "sk": "s", "v": "answer"})
        [sent] = server.requests
    assert b"answer" in sent.body
    assert not {"answer", FUNCTION["AWS_SESSION_TOKEN"]} & set(re.findall(r"\w+", caplog.text))


CHOSEN = """
import logging
logging.getLogger("botocore").setLevel(logging.DEBUG)
import mcp_roundtrip.aws.boto3_client
print(logging.getLogger("botocore").level)
"""


def test_a_level_that_the_tool_has_chosen_for_botocore_stays():
    assert int(run_program(CHOSEN).stdout) == logging.DEBUG
