"""Which client is created for an environment."""

import os
from typing import Any

import pytest

from mcp_roundtrip.aws.boto3_client import Boto3Client, Boto3InvokeClient
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.signed_client import SignedClient
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
    **{
        name: value
        for name, value in FUNCTION.items()
        if name.startswith(("AWS_REG", "AWS_D", "AWS_C", "AWS_SH"))
    },
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:9001/2021-04-23/credentials",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token",
}


class Created:
    """What is created in an environment, and the reasons for boto3."""

    def __init__(self, environment, *, signs=True):
        self.reasons: list[str] = []
        self.clients = AwsClients(signs=signs, on_boto3=self.reasons.append, environment=environment)

    def kind(self, service="kms"):
        client = self.clients.client(service)
        client.close()
        return type(client)


@pytest.mark.parametrize("environment", [FUNCTION, SNAP_START], ids=["on-demand", "SnapStart"])
@pytest.mark.parametrize("service", ["kms", "dynamodb", "lambda", "sqs"])
def test_a_function_does_without_boto3(environment, service):
    created = Created(environment)
    assert created.kind(service) is SignedClient
    assert type(created.clients.invoke_client()) is SignedClient
    assert created.reasons == []


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return the paths of a configuration and a credentials file."""
    for name in ("config", "credentials"):
        (tmp_path / name).write_text("[default]\n")
    for name, value in FUNCTION.items():
        monkeypatch.setenv(name, value)
    return {"config": str(tmp_path / "config"), "credentials": str(tmp_path / "credentials")}


NEEDS = {
    "proxy": ({**FUNCTION, "HTTPS_PROXY": "http://proxy.test"}, "proxy"),
    "lower-case proxy": ({**FUNCTION, "all_proxy": "http://proxy.test"}, "proxy"),
    "profile": ({**FUNCTION, "AWS_PROFILE": "p"}, "profile"),
    "old profile": ({**FUNCTION, "AWS_DEFAULT_PROFILE": "p"}, "profile"),
    "configuration": ({**FUNCTION, "AWS_CONFIG_FILE": "{config}"}, "shared_config"),
    "account": ({**FUNCTION, "AWS_ACCOUNT_ID_ENDPOINT_MODE": "Required"}, "account_id_endpoint"),
    "no region": ({**FUNCTION, "AWS_DEFAULT_REGION": ""}, "region"),
    "partition": ({**FUNCTION, "AWS_DEFAULT_REGION": "aws-global"}, "endpoint"),
    "FIPS endpoint": (
        {**FUNCTION, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_USE_FIPS_ENDPOINT": "true"},
        "endpoint",
    ),
    "endpoint": ({**FUNCTION, "AWS_ENDPOINT_URL_KMS": "http://x.test?y"}, "endpoint"),
    "half a key": ({**FUNCTION, "AWS_SECRET_ACCESS_KEY": ""}, "credentials"),
    "no key": ({**FUNCTION, "AWS_ACCESS_KEY_ID": ""}, "credentials"),
    "web identity": ({**SNAP_START, "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, "credentials"),
    "credentials": ({**SNAP_START, "AWS_SHARED_CREDENTIALS_FILE": "{credentials}"}, "credentials"),
    "container": ({**SNAP_START, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.test"}, "credentials"),
}


@pytest.mark.parametrize(("environment", "reason"), NEEDS.values(), ids=NEEDS)
def test_an_environment_that_needs_boto3_gets_it_and_the_reason_once(files, environment, reason):
    found = {name: value.format(**files) for name, value in environment.items()}
    created = Created(found)
    assert created.kind() is Boto3Client
    assert created.kind("dynamodb") is Boto3Client
    assert type(created.clients.invoke_client()) is Boto3InvokeClient
    assert created.reasons == [reason]


SAME = {
    "no proxy": {**FUNCTION, "HTTPS_PROXY": "", "NO_PROXY": "127.0.0.1"},
    "missing configuration": {**FUNCTION, "AWS_CONFIG_FILE": "/no/such/file"},
    "configuration of an unknown user": {**FUNCTION, "AWS_CONFIG_FILE": "~no-such-user/.aws/config"},
    "configuration that cannot be looked up": {**FUNCTION, "AWS_CONFIG_FILE": "x" * 300},
    "web identity": {**FUNCTION, "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"},  # the key comes first
    "credentials": {**FUNCTION, "AWS_SHARED_CREDENTIALS_FILE": "{credentials}"},
    "account": {**FUNCTION, "AWS_ACCOUNT_ID": "123456789012", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "preferred"},
}


@pytest.mark.parametrize("environment", SAME.values(), ids=SAME)
def test_other_settings_need_no_boto3(files, environment):
    found = {name: value.format(**files) for name, value in environment.items()}
    assert Created(found).kind() is SignedClient


def test_the_file_in_the_home_directory_counts(files, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {name: value for name, value in FUNCTION.items() if name != "AWS_CONFIG_FILE"}
    assert Created(environment).kind() is SignedClient
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text("[default]\nregion = eu-west-1\n")
    assert Created(environment).kind() is Boto3Client


def test_a_deployment_can_choose_boto3(files):
    created = Created(FUNCTION, signs=False)
    assert created.kind() is Boto3Client
    assert type(created.clients.invoke_client()) is Boto3InvokeClient
    assert created.reasons == []


@pytest.mark.parametrize("signs", [True, False])
def test_the_timeouts_and_the_attempts_fit_into_a_request(files, signs, monkeypatch):
    failing = respond(500, {"__type": "InternalFailure"})
    with scripted(failing, failing, failing) as server:
        client: Any = AwsClients(signs=signs).client("kms", endpoint_url=server.url)
        with pytest.raises(AwsError):
            client.call("GetPublicKey", KeyId="k")
        client.close()
    assert len(server.requests) == 3
    if isinstance(client, SignedClient):
        assert (client._connections._connect_timeout_s, client._read_timeout_s) == (1, 2)
    else:
        config = client.client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (1, 2)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_bundle_of_certificates_is_used(variable):
    with scripted() as server:
        environment = {**FUNCTION, "AWS_ENDPOINT_URL": server.url.replace("http", "https")}
        client = Created({**environment, variable: "/no/such/bundle"}).clients.client("kms")
        with pytest.raises(AwsError, check=lambda error: error.code == "invalid_ca_bundle"):
            client.call("GetPublicKey", KeyId="k")


@pytest.mark.parametrize("signs", [True, False])
def test_each_attempt_is_counted(files, signs):
    counted = []
    failing = respond(500, {"__type": "InternalFailure"})
    with scripted(failing) as server:
        clients = AwsClients(signs=signs, on_request=lambda *request: counted.append(request))
        client = clients.client("dynamodb", endpoint_url=server.url)
        client.call("GetItem", TableName="t", Key={"pk": {"S": "p"}})
        client.close()
    assert counted == [("dynamodb", "GetItem")] * 2


IMPORTS = """
import sys
from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.forwarder import LambdaForwarder
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
