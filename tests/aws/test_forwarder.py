"""Forwarding calls to the functions that own them, over HTTP, with each kind of client."""

import json
import socket
import struct
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from mcp_roundtrip.aws.clients import MAX_IDLE_BEFORE_INVOKE_S, AwsClients
from mcp_roundtrip.aws.forwarder import LambdaForwarder
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer

OK = Response(200, (("Content-Type", "application/json"),), b'{"statusCode": 200, "body": "x"}')


class Lambda:
    """A minimal Invoke API that records requests and returns one reply."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reply = OK

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        return self.reply


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    lambda_api = Lambda()
    server = HttpServer(lambda_api.respond, max_body=10_000_000).start()
    for name, value in {
        "AWS_ENDPOINT_URL_LAMBDA": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield lambda_api
    server.close()


@pytest.fixture
def now() -> list[float]:
    return [1_795_000_000.0]


@pytest.fixture(params=["signed", "boto3"])
def clients(request: pytest.FixtureRequest, now: list[float]) -> AwsClients:
    return AwsClients(signs=request.param == "signed", clock=lambda: now[0])


@pytest.fixture
def forward(aws: Lambda, clients: AwsClients) -> Iterator[LambdaForwarder]:
    client = clients.invoke_client()
    yield LambdaForwarder(client)
    client.close()


def test_the_event_is_forwarded_unchanged_with_the_added_fields(
    aws: Lambda, forward: LambdaForwarder
) -> None:
    event = {"version": "2.0", "body": "Größe 世界"}
    assert forward("weather", event, {"mcpDeadlineMs": 5}, 9) == {"statusCode": 200, "body": "x"}
    (request,) = aws.requests
    assert request.target == "/2015-03-31/functions/weather/invocations"
    assert json.loads(request.body) == event
    assert json.loads(b64decode(request.header("x-amz-client-context") or "")) == {
        "custom": {"mcpDeadlineMs": 5}
    }


def test_text_is_forwarded_without_escaping(aws: Lambda, forward: LambdaForwarder) -> None:
    forward("weather", {"body": "Я" * 1_000}, {}, 9)
    assert len(aws.requests[0].body) < 2_100


def test_a_lone_surrogate_is_forwarded(aws: Lambda, forward: LambdaForwarder) -> None:
    forward("weather", {"body": "\ud800"}, {}, 9)
    assert json.loads(aws.requests[0].body) == {"body": "\ud800"}


def _error(status: int, code: str) -> Response:
    return Response(status, (("X-Amzn-ErrorType", code),), b"{}")


def _failed(payload: Any) -> Response:
    return Response(200, (("X-Amz-Function-Error", "Unhandled"),), json.dumps(payload).encode())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (_error(429, "TooManyRequestsException"), "TooManyRequestsException"),
        (_error(500, "ServiceException"), "ServiceException"),
        (_failed({"errorType": "Sandbox.Timedout", "errorMessage": "secret"}), "Sandbox.Timedout"),
        (_failed("odd"), "unhandled"),
        (Response(200, (), b"null"), "malformed_answer"),
        (Response(200, (), b"not json"), "malformed_answer"),
    ],
)
def test_a_failing_owner_is_invoked_once_and_the_error_has_the_reason(
    aws: Lambda, forward: LambdaForwarder, reply: Response, reason: str
) -> None:
    aws.reply = reply
    with pytest.raises(ForwardingFailed) as failed:
        forward("weather", {}, {}, 9)
    assert failed.value.reason == reason
    assert len(aws.requests) == 1


def test_an_unreachable_owner_is_a_failed_owner(
    monkeypatch: pytest.MonkeyPatch, aws: Lambda, clients: AwsClients
) -> None:
    server = HttpServer(aws.respond, max_body=1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
    server.close()
    with pytest.raises(ForwardingFailed) as failed:
        LambdaForwarder(clients.invoke_client())("weather", {}, {}, 9)
    assert failed.value.reason == "EndpointConnectionError"


def test_an_owner_that_does_not_respond_times_out(
    monkeypatch: pytest.MonkeyPatch, clients: AwsClients
) -> None:
    over = threading.Event()

    def hang(request: Request) -> Response:
        over.wait()
        return OK

    server = HttpServer(hang, max_body=1_000).start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
    try:
        with pytest.raises(ForwardingFailed) as failed:
            LambdaForwarder(clients.invoke_client())("weather", {}, {}, 1)
        assert failed.value.reason == "timeout"
    finally:
        over.set()
        server.close()


# idle connections that were closed


class Endpoint:
    """A keep-alive HTTP endpoint on raw sockets. `closes` says when and how it closes connections.

    `requests` has the connection number of each request. `connections` counts the connections.
    """

    def __init__(self, closes: str = "never") -> None:
        self.closes = closes
        self.requests: list[int] = []
        self.connections = 0
        self.closed = threading.Event()
        self.serve(socket.create_server(("127.0.0.1", 0)))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self, listening: socket.socket) -> None:
        self._socket = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream, suppress(OSError):
            while self._reads_request(stream):
                self.requests.append(number)
                if self.closes == "on the second request" and len(self.requests) == 2:
                    # SO_LINGER with 0 s: the client gets an RST, as from a host that restarted.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                if self.closes == "after a response":
                    break
        self.closed.set()

    @staticmethod
    def _reads_request(stream: Any) -> bool:
        head = []
        while (line := stream.readline()) not in (
            b"",
            b"\r\n",
        ):  # empty at the end of the stream, and ever after
            head.append(line)
        if not head:
            return False
        lengths = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")]
        stream.read(*lengths)
        return True

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(
                socket.SHUT_RDWR
            )  # shutdown() interrupts accept() in its thread; close() does not
        self._socket.close()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, aws: Lambda) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", endpoint.url)
    yield endpoint
    endpoint.close()


@pytest.fixture
def forward_at(endpoint: Endpoint, clients: AwsClients) -> Iterator[LambdaForwarder]:
    """Return a function that forwards a call at the time `now`."""
    client = clients.invoke_client()
    yield LambdaForwarder(client)
    client.close()


def test_a_connection_is_reused_within_seconds(endpoint: Endpoint, forward_at: LambdaForwarder) -> None:
    for _ in range(3):
        assert forward_at("weather", {}, {}, 9) == {}
    assert endpoint.requests == [1, 1, 1]


@pytest.mark.parametrize("passed_s", [MAX_IDLE_BEFORE_INVOKE_S + 1, -1])
def test_a_connection_that_may_be_stale_is_replaced_before_sending(
    endpoint: Endpoint, forward_at: LambdaForwarder, now: list[float], passed_s: float
) -> None:
    forward_at("weather", {}, {}, 9)
    now[0] += passed_s
    assert forward_at("weather", {}, {}, 9) == {}
    assert endpoint.requests == [1, 2]


def test_a_connection_closed_by_the_endpoint_is_replaced(
    endpoint: Endpoint, forward_at: LambdaForwarder
) -> None:
    endpoint.closes = "after a response"
    forward_at("weather", {}, {}, 9)
    assert endpoint.closed.wait(9)
    assert forward_at("weather", {}, {}, 9) == {}
    assert endpoint.requests == [1, 2]


def test_a_request_that_may_have_arrived_is_not_retried(
    endpoint: Endpoint, forward_at: LambdaForwarder
) -> None:
    endpoint.closes = "on the second request"
    forward_at("weather", {}, {}, 9)
    with pytest.raises(ForwardingFailed) as failed:
        forward_at("weather", {}, {}, 9)
    assert failed.value.reason == "ConnectionClosedError"
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("signs", [True, False])
def test_a_refused_connection_is_retried_once(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, signs: bool
) -> None:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))  # refuses connections until it listens
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{bound.getsockname()[1]}")
    attempts = []

    def on_request(service: str, operation: str) -> None:
        attempts.append((service, operation))
        if len(attempts) == 2:
            endpoint.close()
            bound.listen()
            endpoint.serve(bound)

    client = AwsClients(signs=signs, on_request=on_request).invoke_client()
    assert LambdaForwarder(client)("weather", {}, {}, 9) == {}
    assert (attempts, endpoint.requests) == (2 * [("lambda", "Invoke")], [1])
    client.close()
