"""Credentials are in no traceback, because failures are logged with theirs."""

import pytest

from mcp_roundtrip.aws.clients import retry_connection
from mcp_roundtrip.aws.services import AwsError
from mcp_roundtrip.aws.signing import AwsCredentials, find_credentials
from mcp_roundtrip.observing.redaction import redacted_traceback
from support.scripted_server import respond, scripted
from support.signed_callers import calling

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


def test_a_client_does_not_show_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with calling() as call:
        assert SECRET not in repr(call.client)


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
