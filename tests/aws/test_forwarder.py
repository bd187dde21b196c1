"""Calls handed on to their owners, over a real boto3 client and HTTP."""

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_roundtrip.aws.forwarder import LambdaForwarder
from mcp_roundtrip.errors import ForwardingFailed
from mcp_roundtrip_local.http.messages import Reply, Request
from mcp_roundtrip_local.http.server import HttpServer

OK = Reply(200, (("Content-Type", "application/json"),), b'{"statusCode": 200, "body": "x"}')


class Lambda:
    """The Invoke API as far as a forwarder sees it: it keeps the requests and gives one reply."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reply = OK

    def respond(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.reply


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    fake = Lambda()
    server = HttpServer(fake.respond, max_body=10_000_000).start()
    for name, value in {
        "AWS_ENDPOINT_URL_LAMBDA": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield fake
    server.close()


@pytest.fixture
def forward(aws: Lambda) -> Iterator[LambdaForwarder]:
    forwarder = LambdaForwarder.from_environment()
    yield forwarder
    forwarder.client(9).close()


def test_the_event_arrives_as_it_was_with_what_goes_along(aws: Lambda, forward: LambdaForwarder) -> None:
    event = {"version": "2.0", "body": "Größe 世界"}
    assert forward("weather", event, {"mcpDeadlineMs": 5}, 9) == {"statusCode": 200, "body": "x"}
    (request,) = aws.requests
    assert request.target == "/2015-03-31/functions/weather/invocations"
    assert json.loads(request.body) == event
    assert json.loads(b64decode(request.header("x-amz-client-context") or "")) == {
        "custom": {"mcpDeadlineMs": 5}
    }


def test_text_is_forwarded_in_the_bytes_it_came_in(aws: Lambda, forward: LambdaForwarder) -> None:
    forward("weather", {"body": "Я" * 1_000}, {}, 9)
    assert len(aws.requests[0].body) < 2_100


def test_a_lone_surrogate_does_not_stop_a_call(aws: Lambda, forward: LambdaForwarder) -> None:
    forward("weather", {"body": "\ud800"}, {}, 9)
    assert json.loads(aws.requests[0].body) == {"body": "\ud800"}


def _error(status: int, code: str) -> Reply:
    return Reply(status, (("X-Amzn-ErrorType", code),), b"{}")


def _failed(payload: Any) -> Reply:
    return Reply(200, (("X-Amz-Function-Error", "Unhandled"),), json.dumps(payload).encode())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (_error(429, "TooManyRequestsException"), "TooManyRequestsException"),
        (_error(500, "ServiceException"), "ServiceException"),
        (_failed({"errorType": "Sandbox.Timedout", "errorMessage": "secret"}), "Sandbox.Timedout"),
        (_failed("odd"), "unhandled"),
        (Reply(200, (), b"null"), "malformed_answer"),
        (Reply(200, (), b"not json"), "malformed_answer"),
    ],
)
def test_an_owner_that_fails_is_asked_once_and_the_reason_is_kept(
    aws: Lambda, forward: LambdaForwarder, reply: Reply, reason: str
) -> None:
    aws.reply = reply
    with pytest.raises(ForwardingFailed) as failed:
        forward("weather", {}, {}, 9)
    assert failed.value.reason == reason
    assert len(aws.requests) == 1


def test_an_owner_nobody_can_reach_has_failed_too(monkeypatch: pytest.MonkeyPatch, aws: Lambda) -> None:
    server = HttpServer(aws.respond, max_body=1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
    server.close()
    forwarder = LambdaForwarder.from_environment()
    with pytest.raises(ForwardingFailed) as failed:
        forwarder("weather", {}, {}, 9)
    assert failed.value.reason == "EndpointConnectionError"
    forwarder.client(9).close()


def test_an_owner_that_does_not_answer_is_given_up_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def hang(request: Request) -> Reply:
        over.wait()
        return OK

    server = HttpServer(hang, max_body=1_000).start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
    forwarder = LambdaForwarder.from_environment()
    try:
        with pytest.raises(ForwardingFailed) as failed:
            forwarder("weather", {}, {}, 1)
        assert failed.value.reason == "timeout"
    finally:
        over.set()
        forwarder.client(1).close()
        server.close()
