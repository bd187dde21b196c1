import json
import socket
from traceback import format_exception
from typing import Any, Final

import pytest

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.aws.lambda_and_sqs import invoke_owner
from mcp_roundtrip.aws.signed_client import MAX_IDLE_BEFORE_INVOKE_S
from mcp_roundtrip.deployment.aws_ports import AwsPorts
from mcp_roundtrip.deployment.settings import Settings
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip_testing.ports import RecordingObserver
from support.aws_clients import CLIENTS, FUNCTION, KINDS
from support.scripted_server import reset, respond, scripted

WEATHER: Final[Any] = ("weather", {}, {}, 9)
"""Arguments of a call that is forwarded."""


@pytest.fixture
def aws(monkeypatch):
    """Yield an Invoke API, which answers an empty object if its script is empty."""
    with scripted() as server:
        for name, value in {**FUNCTION, "AWS_ENDPOINT_URL_LAMBDA": server.url}.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def now():
    return [1_795_000_000.0]


@pytest.fixture(params=KINDS)
def clients(request, now):
    return CLIENTS[request.param](clock=lambda: now[0])


@pytest.fixture
def forward(aws, clients):
    ports = AwsPorts(Settings(AuthMode.NONE, owners="*"), RecordingObserver(), clients)
    return ports.forward


def test_text_is_forwarded_without_escaping_but_a_lone_surrogate(aws, forward):
    forward("weather", {"body": "Я" * 1_000}, {}, 9)
    forward("weather", {"body": "\ud800"}, {}, 9)
    text, surrogate = aws.requests
    assert len(text.body) < 2_100
    assert json.loads(surrogate.body) == {"body": "\ud800"}


def fails_with(reason: str) -> Any:
    return pytest.raises(ForwardingFailed, check=lambda failure: failure.reason == reason)


UNHANDLED: Final[Any] = {"X_Amz_Function_Error": "Unhandled"}
THROTTLED: Final = respond(429, {}, X_Amzn_ErrorType="TooManyRequestsException")


@pytest.mark.parametrize(
    ("reply", "logged"),
    [
        (respond(403, {"Message": "role"}, X_Amzn_ErrorType="AccessDenied"), "AccessDenied: role"),
        (THROTTLED, "TooManyRequestsException"),
        (respond(200, {"errorType": "TooManyRequestsException"}, **UNHANDLED), "TooManyRequestsException"),
        (respond(500, {}, X_Amzn_ErrorType="ServiceException"), "ServiceException"),
        (respond(200, {"errorType": "Sandbox.Timedout"}, **UNHANDLED), "Sandbox.Timedout"),
        (respond(200, b'"odd"', **UNHANDLED), "unhandled"),
        (respond(200, b"null"), "malformed_answer"),
        (respond(200, b"not json"), "malformed_answer"),
    ],
)
def test_a_failing_owner_is_invoked_once_and_the_log_has_the_reason(aws, forward, reply, logged):
    aws.script = [reply]
    with fails_with(logged.partition(":")[0]) as failed:
        forward(*WEATHER)
    assert len(aws.requests) == 1
    assert failed.value.is_throttled is (reply is THROTTLED)
    assert logged in "".join(format_exception(failed.value))


def test_an_owner_that_does_not_respond_in_time_or_cannot_be_reached_is_a_failed_owner(aws, forward):
    def respond_late(connected):
        connected.server.over.wait(1.5)
        return respond(200, {})(connected)

    aws.script = [respond_late]
    with fails_with("timeout"):
        forward("weather", {}, {}, 1)
    aws.close()
    with fails_with("EndpointConnectionError"):
        forward(*WEATHER)


@pytest.mark.parametrize(("passed_s", "second"), [(0, 1), (MAX_IDLE_BEFORE_INVOKE_S + 1, 2), (-1, 2)])
def test_a_connection_that_may_be_stale_is_replaced_before_sending(aws, forward, now, passed_s, second):
    forward(*WEATHER)
    now[0] += passed_s
    assert forward(*WEATHER) == {}
    assert aws.connections_used == [1, second]


def test_a_request_that_may_have_arrived_is_not_retried(aws, forward):
    aws.script = [respond(200, {}), reset]
    forward(*WEATHER)
    with fails_with("ConnectionClosedError"):
        forward(*WEATHER)
    assert len(aws.requests) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_connection_is_retried_once(aws, monkeypatch, kind):
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))  # refuses connections until it listens
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{bound.getsockname()[1]}")
    attempts = []

    def on_request(service: str, operation: str) -> None:
        attempts.append((service, operation))
        if len(attempts) == 2:
            aws.close()
            bound.listen()
            aws.serve(bound)

    client = CLIENTS[kind](on_request=on_request).invoke_client()
    assert invoke_owner(client, *WEATHER) == {}
    assert (attempts, aws.connections_used) == (2 * [("lambda", "Invoke")], [1])
