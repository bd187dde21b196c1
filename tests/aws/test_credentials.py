import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.credentials import RefreshableCredentials
from botocore.utils import ContainerMetadataFetcher

from mcp_roundtrip.aws import credentials
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.credentials import (
    REFRESH_BEFORE_S,
    RETRY_S,
    AwsCredentials,
    ContainerCredentials,
    find_credentials,
)
from mcp_roundtrip.aws.signed_client import AwsClients, retry_connection
from mcp_roundtrip.observing.traceback_redaction import redacted_traceback
from support.aws_clients import endpoint_of
from support.scripted_server import hang, reset, respond, scripted
from support.signed_callers import calling, fails_with

NOW = 1_795_000_000.0
KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
FULL, TOKEN = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN"


def values(credentials):
    return credentials.access_key_id, credentials.secret_access_key, credentials.session_token


@pytest.mark.parametrize(
    ("variables", "token"),
    [
        ({}, None),
        ({FULL: "http://127.0.0.1:1/"}, None),
        ({"AWS_SESSION_TOKEN": "t"}, "t"),
        ({"AWS_SECURITY_TOKEN": "old", "AWS_SESSION_TOKEN": "t"}, "old"),  # as botocore
        ({"AWS_SESSION_TOKEN": ""}, ""),
    ],
)
def test_the_variables_of_a_function_are_its_credentials_also_after_a_change(variables, token):
    environment = KEYS | variables
    credentials: Any = find_credentials(environment)
    assert values(credentials()) == ("AKID", "secret", token)
    environment |= {"AWS_ACCESS_KEY_ID": "NEXT"}
    assert values(credentials()) == ("NEXT", "secret", token)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"AWS_ACCESS_KEY_ID": "AKID"},
        {"AWS_ACCESS_KEY_ID": "AKID", FULL: "http://127.0.0.1:1/"},
        {"AWS_PROFILE": "p"},
        {FULL: "http://127.0.0.1:1/", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"},
        {FULL: "http://127.0.0.1:1/", "AWS_SHARED_CREDENTIALS_FILE": "/credentials"},
        {FULL: "ftp://127.0.0.1/"},
        {FULL: "http://127.0.0.1/?id=1"},
        {FULL: "http://any.test/v1"},
        {FULL: "http://10.0.0.1/v1"},
        {FULL: "http://169.254.169.254/v1"},
        {FULL: "http://localhost.evil.test/v1"},
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials"},
    ],
)
def test_only_boto3_knows_other_sources_and_no_other_host_gets_the_token(environment):
    assert find_credentials(environment) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9001", "localhost", "[::1]:9001"])
def test_the_function_itself_gets_the_token(host):
    assert find_credentials({FULL: f"http://{host}/v1"}) is not None
    fetcher: Any = ContainerMetadataFetcher(session=object())
    fetcher._validate_allowed_url(f"http://{host}/v1")


def test_the_time_of_a_refresh_is_that_of_botocore():
    botocore_credentials: Any = RefreshableCredentials
    assert botocore_credentials._advisory_refresh_timeout == REFRESH_BEFORE_S


def document(number=1, lasts_s=3600, **other):
    expiration = datetime.fromtimestamp(NOW + lasts_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "AccessKeyId": f"AKID{number}",
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": expiration,
        **other,
    }


class Fetcher:
    """Container credentials from a server, at the time `now`. `pauses` has the pauses between attempts."""

    def __init__(self, server, **environment):
        self.now = NOW
        self.pauses: list[float] = []
        endpoint = endpoint_of(f"{server.url}/creds")
        self._credentials = ContainerCredentials(
            endpoint, environment, clock=lambda: self.now, sleep=self.pauses.append
        )

    def __call__(self):
        return self._credentials()

    def key(self):
        return self().access_key_id


def test_credentials_are_fetched_once_and_used_until_they_are_about_to_expire():
    with scripted(respond(200, document(1)), respond(200, document(2, 7200))) as server:
        fetcher = Fetcher(server)
        assert server.requests == []
        assert [fetcher.key() for _ in range(3)] == ["AKID1"] * 3
        fetcher.now += 3600 - REFRESH_BEFORE_S - 1
        assert fetcher.key() == "AKID1"
        fetcher.now += 1
        assert [fetcher.key() for _ in range(3)] == ["AKID2"] * 3
    assert [(request.method, request.target) for request in server.requests] == [("GET", "/creds")] * 2
    assert {request.header("authorization") for request in server.requests} == {None}


def test_the_token_is_sent():
    with scripted(respond(200, document())) as server:
        Fetcher(server, **{TOKEN: "from-variable"})()
    [request] = server.requests
    assert request.header("authorization") == "from-variable"


@pytest.mark.parametrize("token", ["a\r\nX: y", "a\n"])
def test_a_token_that_is_no_header_is_not_sent(token):
    with scripted() as server, fails_with("credentials_token"):
        Fetcher(server, **{TOKEN: token})()
    assert server.requests == []


BROKEN = {
    "status": (respond(404, b"no"), "credentials_unavailable"),
    "redirect": (respond(302, document(), Location="http://evil.test"), "credentials_unavailable"),
    "no JSON": (respond(200, b"no"), "credentials_malformed"),
    "no key": (respond(200, {"Token": "x"}), "credentials_malformed"),
    "no expiry": (respond(200, document(Expiration=None)), "credentials_malformed"),
    "another expiry": (respond(200, document(Expiration="soon")), "credentials_malformed"),
}


@pytest.mark.parametrize(("reply", "code"), BROKEN.values(), ids=BROKEN)
def test_an_endpoint_without_credentials_is_asked_three_times(reply, code):
    with scripted(reply, reply, reply) as server:
        fetcher = Fetcher(server)
        with fails_with(code):
            fetcher()
        assert (fetcher.pauses, len(server.requests)) == ([1, 1], 3)
    with scripted(reply, respond(200, document())) as server:
        assert Fetcher(server).key() == "AKID1"


def test_credentials_outlive_a_failing_endpoint_until_they_expire():
    failing = respond(500, b"")
    with scripted(respond(200, document()), failing, failing, *[failing] * 3) as server:
        fetcher = Fetcher(server)
        fetcher()
        fetcher.now += 3600 - RETRY_S - 1
        for asked in (2, 2, 3):
            assert fetcher.key() == "AKID1"
            assert len(server.requests) == asked
            fetcher.now += RETRY_S / 2
        assert fetcher.pauses == []
        fetcher.now += 1
        with fails_with("credentials_unavailable"):
            fetcher()


@pytest.mark.parametrize("reply", [hang(), reset])
def test_an_endpoint_that_does_not_answer_is_no_transient_error(reply, monkeypatch):
    monkeypatch.setattr(credentials, "_TIMEOUT_S", 0.1)
    with scripted(reply, reply, reply) as server, fails_with("credentials_unavailable"):
        Fetcher(server)()


def test_threads_without_credentials_wait_for_one_request():
    barrier = threading.Barrier(8)
    with scripted(respond(200, document())) as server, ThreadPoolExecutor(8) as pool:
        fetcher = Fetcher(server)

        def key(_):
            barrier.wait(9)
            return fetcher.key()

        assert set(pool.map(key, range(8))) == {"AKID1"}
    assert len(server.requests) == 1


SECRET = "correct-horse-battery-staple"
DAMAGES = {"line feed": "\n", "header": "\r\nX: y", "no Latin-1": "\N{EURO SIGN}"}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("part", range(3), ids=["access key", "secret key", "session token"])
def test_the_error_of_a_call_quotes_no_credentials(part, damage):
    parts = ["AKID", "secret", "token"]
    parts[part] = SECRET + damage
    with calling(respond(400, {"__type": "AccessDenied"}), retries=retry_connection) as call:
        call.client.credentials = lambda: AwsCredentials(*parts)
        with pytest.raises(AwsError) as raised:
            call()
    assert SECRET not in redacted_traceback(raised.value, [])
    assert SECRET not in repr(call.client.credentials())


def test_the_factory_of_clients_does_not_show_the_environment():
    assert SECRET not in repr(AwsClients(environment={"AWS_SECRET_ACCESS_KEY": SECRET}))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_error_of_a_container_s_endpoint_quotes_no_token(damage):
    with scripted() as server:
        environment = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": SECRET + damage,
        }
        credentials = find_credentials(environment)
        assert credentials is not None
        with pytest.raises(AwsError) as raised:
            credentials()
    assert SECRET not in redacted_traceback(raised.value, [])
