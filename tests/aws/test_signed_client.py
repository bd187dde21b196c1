import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from mcp_roundtrip.aws import connections
from mcp_roundtrip.aws.client_interface import NoResponse, NotSent
from mcp_roundtrip.aws.connections import MAX_KEPT, Connections
from mcp_roundtrip.aws.credentials import AwsCredentials
from mcp_roundtrip.aws.signed_client import MAX_IDLE_S, retry_connection
from support.aws_clients import endpoint_of
from support.scripted_server import hang, reset, respond, respond_and_close, scripted, send
from support.signed_callers import Caller, calling, fails_with

OK = respond(200, {})
THROTTLED = respond(400, {"__type": "ThrottlingException"})


FAILING = respond(500, {"__type": "KMSInternalException"})


DAMAGED = {
    "closed without a response": send(b"", close=True),
    "reset": reset,
}


@pytest.mark.parametrize("reply", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_response_is_requested_again_up_to_twice(reply):
    with calling(reply, reply) as call:
        assert call() == {}
        assert call.pauses == [0.05, 0.1]
    assert call.server.connections_used == [1, 2, 3]
    with calling(reply, reply, reply) as call, fails_with("ConnectionClosedError", NoResponse):
        call()
    assert len(call.server.requests) == 3


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
@pytest.mark.parametrize(("of_client", "of_call"), [({"timeout_s": 0.1}, {}), ({}, {"timeout_s": 0.1})])
def test_a_response_that_takes_too_long_times_out(begun, of_client, of_call):
    with calling(hang(begun), retries=retry_connection, **of_client) as call:
        with fails_with("timeout", NoResponse):
            call(**of_call)
        assert call() == {}
    assert call.server.connections_used == [1, 2]


def test_a_response_that_arrives_slowly_cannot_outlast_the_timeout():
    """A socket's own timeout limits the wait for each byte, and not that for the response."""

    def drip(connected):
        connected.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not connected.server.over.wait(0.01):
            connected.socket.sendall(b"x")
        return False

    with calling(drip, retries=retry_connection, timeout_s=0.2) as call, fails_with("timeout", NoResponse):
        call()


def test_the_timeout_of_a_request_includes_the_time_in_which_it_was_sent(monkeypatch):
    times = iter([0.0])  # before the request
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: next(times, 60.0)))

    def respond_late(connected):
        connected.server.over.wait(0.05)
        return OK(connected)

    with calling(respond_late, retries=retry_connection) as call, fails_with("timeout", NoResponse):
        call()


def test_a_request_may_take_longer_than_a_connection_to_be_sent():
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        endpoint = endpoint_of(f"http://127.0.0.1:{listening.getsockname()[1]}")
        sender = Connections(endpoint, MAX_IDLE_S, connect_timeout_s=0.1)
        sending = pool.submit(sender.request, "POST", "/", (), bytes(10_000_000), 9)
        assert not wait([sending], 0.2).done, "nobody reads it yet"
        accepted, _ = listening.accept()
        with accepted, accepted.makefile("rb") as received:
            assert b"".join(iter(received.readline, b"\r\n")).startswith(b"POST / HTTP/1.1\r\n")
            assert len(received.read(10_000_000)) == 10_000_000
            accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            assert sending.result().body == b"{}"


def test_the_connection_of_a_failed_response_is_closed_at_once():
    closed = threading.Event()

    def wait_for_end(connected):
        connected.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
        if not connected.socket.recv(1):
            closed.set()
        return False

    with calling(wait_for_end, retries=retry_connection, timeout_s=0.1) as call:
        with fails_with("timeout", NoResponse) as failed:
            call()
        assert closed.wait(9), f"{failed} refers to the response"


def test_kept_connections_are_closed_with_their_client():
    with scripted() as server:
        sender = Connections(endpoint_of(server.url), MAX_IDLE_S)
        sender.request("POST", "/", (), b"", 9)
        connected = sender._kept[0][1].sock
        del sender
        assert connected.fileno() == -1


def test_a_throttled_call_is_repeated_after_longer_pauses():
    with calling(THROTTLED, FAILING) as call:
        assert call() == {}
        assert call.pauses == [1, 0.1]


def test_each_attempt_is_signed_at_its_own_time():
    with calling(FAILING) as call:

        def sleep(pause_s):
            call.now += 60

        call.client.sleep = sleep
        call()
    first, second = (str(request.header("x-amz-date")) for request in call.server.requests)
    assert datetime.strptime(second, "%Y%m%dT%H%M%SZ") - datetime.strptime(
        first, "%Y%m%dT%H%M%SZ"
    ) == timedelta(seconds=60)


@pytest.mark.parametrize(("passed_s", "second"), [(0, 1), (MAX_IDLE_S + 1, 2), (-1, 2)])
def test_a_connection_is_used_again_unless_it_was_idle_for_too_long(passed_s, second):
    with calling(retries=retry_connection) as call:
        call()
        call.now += passed_s
        call()
        call.connections.close()
        call()
    assert call.server.connections_used == [1, second, second + 1]


def test_a_connection_that_the_server_closed_is_replaced_before_sending():
    closed = threading.Event()
    with calling(respond_and_close(closed), retries=retry_connection) as call:
        call()
        assert closed.wait(9)
        assert call() == {}
    assert call.server.connections_used == [1, 2]


def test_a_connection_with_bytes_that_belong_to_no_request_is_replaced():
    sent = threading.Event()

    def respond_twice(connected):
        OK(connected)
        stays_open = respond(200, {"KeyId": "another"})(connected)
        sent.set()
        return stays_open

    with calling(respond_twice, retries=retry_connection) as call:
        assert call() == {}
        assert sent.wait(9)
        assert call() == {}
    assert call.server.connections == 2


@pytest.mark.parametrize(
    "reply", [respond(200, {}, Connection="close"), send(b"HTTP/1.1 200 OK\r\n\r\n{}", close=True)]
)
def test_a_response_that_ends_the_connection_does(reply):
    with calling(reply, retries=retry_connection) as call:
        call()
        call()
    assert call.server.connections_used == [1, 2]


def test_threads_have_connections_of_their_own_of_which_some_are_kept():
    threads, barrier = MAX_KEPT + 3, threading.Barrier(MAX_KEPT + 3)

    def respond_together(connected):
        barrier.wait(9)
        return OK(connected)

    with calling(*[respond_together] * threads) as call:
        with ThreadPoolExecutor(threads) as pool:
            assert list(pool.map(lambda _: call(), range(threads))) == [{}] * threads
        assert call.server.connections == threads
        assert len(call.connections._kept) == MAX_KEPT


def test_a_forked_process_opens_connections_of_its_own():
    with calling() as call:
        call()
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if call() == {} else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        call()
    assert call.server.connections_used == [1, 2, 1]


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "x" * 64 + ".test"])
def test_an_endpoint_that_cannot_be_reached_is_an_error_of_a_request_that_was_not_sent(host):
    with scripted() as server:
        pass  # nothing listens any more
    with Caller(server, retry_connection, host=host) as call, fails_with("EndpointConnectionError", NotSent):
        call()


def test_lambda_s_trace_id_is_passed_on(monkeypatch):
    monkeypatch.setenv("_X_AMZN_TRACE_ID", 'Root=1-5759e988-bd862e3fe;Sampled=1;Lineage="a b"')
    with calling() as call:
        call()
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "weather")
        call()
    assert [request.header("x-amzn-trace-id") for request in call.server.requests] == [
        None,
        'Root=1-5759e988-bd862e3fe;Sampled=1;Lineage="a%20b"',
    ]


def test_a_session_token_or_a_path_that_is_no_header_is_an_error():
    with calling() as call:
        call.client.endpoint = call.client.endpoint._replace(path="/\x01")
        with fails_with("invalid_header"):
            call()
        call.client.endpoint = call.client.endpoint._replace(path="/")
        call.client.credentials = lambda: AwsCredentials("a", "b", "x\r\nHost: evil.test")
        with fails_with("invalid_header"):
            call()
    assert call.server.requests == []


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

NO_RESPONSE = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", False),
    "a head": (HEAD, True),
    "a header": (HEAD + b"X-A: b\r\nContent-Length: 1", True),
    "a body": (HEAD + b"Content-Length: 3\r\n\r\n{}", True),
    "no last chunk": (CHUNKED + b"2\r\n{}\r\n", True),
    "an interim response": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", True),
    "another version": (b"HTTP/2 200 OK\r\n\r\n", False),
    "a chunk with a negative length": (CHUNKED + b"-5\r\n", False),
    "a chunk that is too long": (CHUNKED + b"2\r\n{}}}\r\n0\r\n\r\n", False),
    "too many headers": (HEAD + b"A: b\r\n" * 101 + b"\r\n", False),
}
"""Bytes that are no response, and whether the server closes the connection after them."""


@pytest.mark.parametrize(("wire", "closes"), NO_RESPONSE.values(), ids=NO_RESPONSE)
def test_an_incomplete_or_invalid_response_is_no_response(wire, closes):
    with calling(send(wire, close=closes), retries=retry_connection) as call:
        with fails_with("ConnectionClosedError", NoResponse):
            call()
        assert len(call.server.requests) == 1
        assert call() == {}
    assert call.server.connections_used == [1, 2]


ENDLESS = {
    # Newer Pythons read 100 of them.
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\nA: " + b"x" * 200 + b"\r\n\r\n"),
    "a header": (HEAD + b"A: ", b"x" * 100),
    "a stated length": (HEAD + b"Content-Length: 1000000000000000\r\n\r\n", b"x" * 100),
    "a chunk with a negative length": (CHUNKED + b"-1\r\n", b"x" * 100),
    "many chunks": (CHUNKED, b"64\r\n" + b"x" * 100 + b"\r\n"),
    "a body without length": (HEAD + b"\r\n", b"x" * 100),
}
"""How a response begins, and what follows without an end."""


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS)
def test_a_response_that_is_too_large_is_not_read_to_its_end(monkeypatch, start, more):
    monkeypatch.setattr(connections, "MAX_RESPONSE", 10_000)

    def stream(connected):
        connected.socket.sendall(start)
        while True:  # until the client closes the connection
            connected.socket.sendall(more)

    with calling(stream) as call, fails_with("response_too_large"):
        call()
    assert len(call.server.requests) == 1


def test_a_response_as_large_as_the_limit_is_read(monkeypatch):
    wire = HEAD + b"Content-Length: 2\r\n\r\n{}"
    monkeypatch.setattr(connections, "MAX_RESPONSE", len(wire))
    with calling(send(wire)) as call:
        assert call() == {}
    monkeypatch.setattr(connections, "MAX_RESPONSE", len(wire) - 1)
    with calling(send(wire)) as call, fails_with("response_too_large"):
        call()


REUSABLE = {
    "a length": HEAD + b"Content-Length: 2\r\n\r\n{}",
    "chunks": CHUNKED + b"1;x=y\r\n{\r\n01\r\n}\r\n0\r\nX: y\r\n\r\n",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\n{}",
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
}


HTTP_1_0 = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("wire", [*REUSABLE.values(), HTTP_1_0])
def test_the_connection_of_a_complete_response_without_more_bytes_is_used_again(wire):
    for sent, second in ((wire, 1 + (wire is HTTP_1_0)), (wire + HEAD, 2)):
        with calling(send(sent), retries=retry_connection) as call:
            assert call() == call() == {}
        assert call.server.connections_used == [1, second]
