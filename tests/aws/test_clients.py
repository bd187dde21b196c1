"""Which client is created for an environment."""

import os
from typing import Any

import pytest

from mcp_roundtrip.aws.boto3_client import Boto3Client, Boto3InvokeClient
from mcp_roundtrip.aws.clients import AwsClients, SignedClient
from mcp_roundtrip.aws.services import SERVICES, AwsError
from mcp_roundtrip.internal_errors import SettingsError
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
"""The variables of a Lambda function, isolated from the files of a developer."""


@pytest.mark.parametrize("environment", [FUNCTION, SNAP_START, FUNCTION | WEB_IDENTITY])
def test_a_function_does_without_boto3(environment):
    clients = AwsClients(environment=environment)
    for service in SERVICES:
        assert type(clients.client(service)) is SignedClient
    assert type(clients.invoke_client()) is SignedClient


@pytest.fixture
def function(monkeypatch):
    """Set the variables of a function."""
    for name, value in FUNCTION.items():
        monkeypatch.setenv(name, value)


UNSUPPORTED = {
    "no region": {**FUNCTION, "AWS_DEFAULT_REGION": ""},
    "endpoint": {**FUNCTION, "AWS_ENDPOINT_URL_LAMBDA": "http://x.test?y"},
    "half a key": {**FUNCTION, "AWS_SECRET_ACCESS_KEY": ""},
    "no key": {**FUNCTION, "AWS_ACCESS_KEY_ID": ""},
    "web identity": {**SNAP_START, **WEB_IDENTITY},
    "credentials file": {**SNAP_START, "AWS_SHARED_CREDENTIALS_FILE": "/credentials"},
    "container": {**SNAP_START, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.test"},
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


def test_a_deployment_can_choose_boto3(function):
    clients = AwsClients(signs=False)
    client = clients.client("kms")
    client.close()
    assert type(client) is Boto3Client
    assert type(clients.invoke_client()) is Boto3InvokeClient


@pytest.mark.parametrize("signs", [True, False])
def test_the_timeouts_and_the_attempts_fit_into_a_request_and_each_attempt_is_counted(function, signs):
    counted = []
    failing = respond(500, {"__type": "InternalFailure"})
    with scripted(failing, failing, failing) as server:
        clients = AwsClients(signs=signs, on_request=lambda *request: counted.append(request))
        client: Any = clients.client("kms", endpoint_url=server.url)
        with pytest.raises(AwsError):
            client.call("GetPublicKey", KeyId="k")
        client.close()
    assert counted == [("kms", "GetPublicKey")] * len(server.requests) == [("kms", "GetPublicKey")] * 3
    if isinstance(client, SignedClient):
        assert (client.connections._connect_timeout_s, client.read_timeout_s) == (1, 2)
    else:
        config = client.client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (1, 2)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_bundle_of_certificates_is_used(variable):
    with scripted() as server:
        environment = {**FUNCTION, "AWS_ENDPOINT_URL": server.url.replace("http", "https")}
        client = AwsClients(environment={**environment, variable: "/no/such/bundle"}).client("kms")
        with pytest.raises(AwsError, check=lambda error: error.code == "invalid_ca_bundle"):
            client.call("GetPublicKey", KeyId="k")


IMPORTS = """
import sys
from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.invocation import LambdaForwarder
assert LambdaForwarder(AwsClients().invoke_client())("weather", {}, {}, 9) == {}
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
