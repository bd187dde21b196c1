import http.client
import json
import threading

import pytest

from mcp_roundtrip_tools.run.api_gateway.gateway import Gateway
from mcp_roundtrip_tools.run.api_gateway.routing import Cors, match_route
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.terminal.terminal import PlainLines
from mcp_roundtrip_tools.template.model import Route
from support.sam_applications import http as request
from support.served_application import TEMPLATE, serve

ALLOWED = {"Origin": "https://app.example"}
BROWSERS = {"Platform.AllowedOrigins": "https://app.example"}

INTERNAL = {"message": "Internal Server Error"}


@pytest.fixture
def released():
    event = threading.Event()
    yield event
    event.set()


def test_a_request_reaches_its_function_as_an_event(running):
    headers = {"Content-Type": "application/json", "Mcp-Method": "tools/list", "Cookie": "a=1"}
    response = request(running.app.url("/echo?x=1"), method="POST", body=b'{"id": 1}', headers=headers)
    event = response.json()["event"]
    assert (event["version"], event["routeKey"], event["rawPath"]) == ("2.0", "ANY /echo", "/echo")
    assert (event["body"], event["isBase64Encoded"]) == ('{"id": 1}', False)
    assert event["headers"]["mcp-method"] == "tools/list"
    assert event["cookies"] == ["a=1"]
    assert response.headers["apigw-requestid"] == event["requestContext"]["requestId"]
    assert any(line.startswith("POST /echo tools/list 200 ") for line in running.log)


def test_a_chunked_body_is_forwarded_completely_on_a_persistent_connection(running):
    connection = http.client.HTTPConnection(running.app.url("").removeprefix("http://"))
    for _ in range(2):
        connection.request("PUT", "/echo", body=iter([b"ab", b"c"]), headers={"Content-Type": "text/plain"})
        assert json.loads(connection.getresponse().read())["event"]["body"] == "abc"
    connection.close()


@pytest.mark.parametrize("path", ["/odd/raise", "/odd/malformed"])
def test_the_client_does_not_get_the_reason_of_a_failure(running, path):
    response = request(running.app.url(path))
    assert (response.status, response.json()) == (500, INTERNAL)


@pytest.mark.parametrize("size", [10 * 1024 * 1024 + 1, 6 * 1024 * 1024])
def test_a_body_over_the_limit_is_refused(running, size):
    response = request(
        running.app.url("/echo"), method="POST", body=b"x" * size, headers={"Content-Type": "text/plain"}
    )
    assert response.status == 413


def test_a_function_over_the_integration_timeout_is_a_503(released):
    def invoke(invocation: InvokeRequest) -> InvocationResult:
        released.wait(10)
        return InvocationResult(b"{}")

    gateway = Gateway(lambda: [Route("ANY", "/x", "f")], invoke, RunRecorder(), timeout_s=0.05)
    reply = gateway.respond(Request("GET", "/x", ()))
    assert (reply.status, json.loads(reply.body)) == (503, {"message": "Service Unavailable"})
    released.set()
    gateway.close()


def test_a_client_cannot_write_control_characters_to_the_log():
    log: list[str] = []
    gateway = Gateway(
        lambda: [], lambda invocation: InvocationResult(b"{}"), RunRecorder(PlainLines(log.append))
    )
    gateway.respond(Request("GET", "/x", (("Mcp-Method", "\x1b[2Jtools/call"),)))
    gateway.close()
    assert log[0].startswith("GET /x \ufffd[2Jtools/call 404 ")


def test_the_cors_configuration_of_the_template_is_applied():
    lines: list[str] = []
    preflight = {**ALLOWED, "Access-Control-Request-Method": "POST"}
    with serve(TEMPLATE, parameters={"AuthMode": "none", **BROWSERS}, log=lines.append) as app:
        reply = request(app.url(), method="OPTIONS", headers=preflight)
        assert (reply.status, reply.headers["access-control-allow-methods"]) == (204, "GET,POST,DELETE")
        assert reply.headers["access-control-allow-headers"] == "authorization,*"
        others = request(app.url(), method="OPTIONS", headers={**preflight, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in others.headers
        refused = request(app.url(), method="POST", body=b"{}", headers=ALLOWED)
        assert refused.headers["access-control-allow-origin"] == "https://app.example"


def test_the_short_forms_of_sam_allow_every_origin_or_one_and_no_headers_or_methods():
    assert Cors.of(True) == Cors.of({"AllowOrigins": ["*"]})
    assert Cors.of("https://app.example") == Cors.of({"AllowOrigins": ["https://app.example"]})
    assert Cors.of(False) is None


APP = ALLOWED["Origin"]


@pytest.mark.parametrize(
    ("allowed", "credentials", "expected"),
    [
        ("*", False, [("access-control-allow-origin", "*")]),
        (
            *("https://*", True),
            [("access-control-allow-origin", APP), ("access-control-allow-credentials", "true")],
        ),
        ("http://*", False, []),
        ("https://other.example", True, []),
    ],
)
def test_the_headers_of_a_function_are_replaced_by_those_of_the_configuration(allowed, credentials, expected):
    configured = Cors.of({"AllowOrigins": [allowed], "AllowCredentials": credentials})
    own = Response(200, (("Access-Control-Allow-Origin", "*"), ("content-type", "text/plain")))
    reply = configured.add_to(own, Request("POST", "/", (("origin", APP),)))
    assert ("content-type", "text/plain") in reply.headers
    assert [each for each in reply.headers if each[0].lower().startswith("access-control-")] == expected


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("POST", ["origin", "access-control-request-method"]),
        ("OPTIONS", ["origin"]),
        ("OPTIONS", ["access-control-request-method"]),
    ],
)
def test_other_requests_are_no_preflights(method, names):
    configured = Cors.of({"AllowOrigins": ["*"]})
    assert configured.preflight(Request(method, "/", tuple((name, APP) for name in names))) is None


ROUTES = [
    Route("ANY", "$default", "default"),
    Route("ANY", "/{proxy+}", "greedy"),
    Route("ANY", "/tools/{name}", "any_tool"),
    Route("POST", "/tools/{name}", "post_tool"),
    Route("GET", "/tools/weather", "weather"),
    Route("GET", "/files/{dir}/{rest+}", "files"),
]


@pytest.mark.parametrize(
    ("method", "path", "function", "parameters"),
    [
        ("GET", "/tools/weather", "weather", {}),
        ("POST", "/tools/weather", "post_tool", {"name": "weather"}),
        ("PUT", "/tools/weather", "any_tool", {"name": "weather"}),
        ("GET", "/files/a/b/c", "files", {"dir": "a", "rest": "b/c"}),
        ("GET", "/files/a/", "greedy", {"proxy": "files/a/"}),
        ("GET", "/tools/", "greedy", {"proxy": "tools/"}),
        ("GET", "/", "default", {}),
    ],
)
def test_the_most_specific_route_is_taken(method, path, function, parameters):
    found = match_route(ROUTES, method, path)
    assert found is not None
    assert (found[0].function, found[1]) == (function, parameters)
