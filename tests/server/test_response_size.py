"""A response over the limit of its event source is replaced by an error."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from support.event_sources import sent_by
from support.messages import META, call, headers, http_event, message


@pytest.mark.parametrize("text", ["世" * 1_000_000, "a" * 6_000_001, '"' * 2_000_000])
def test_a_result_over_the_limit_of_lambda_is_a_tool_error_for_the_model(text: str) -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    large = Server("large", ports=lambda: ports)

    @large.tool
    def result() -> str:
        return text

    @large.tool
    def question(ctx: Context) -> str:
        return ctx.elicit("q", text, str)

    for name in ("result", "question"):
        response = large.lambda_handler(http_event(call(name)), None)
        assert len(json.dumps(response)) < 6_000_000
        assert json.loads(response["body"]).get("result", {}).get("isError") or name == "question"
    assert "result_too_large" in [event for event, _ in observer.failures]
    last = [fields["outcome"] for event, fields in observer.events if event == "request_completed"]
    assert last[0] == "result_too_large"


@pytest.mark.parametrize("limit", [2_000, 990_000])
@pytest.mark.parametrize("notifications", [0, 40])
def test_no_response_exceeds_the_limit_of_its_event_source(limit: int, notifications: int) -> None:
    observer, text = RecordingObserver(), "a" * limit
    ports = make_ports(observer=observer)
    server = Server("large", ports=lambda: ports)

    @server.tool
    def result(ctx: Context) -> str:
        for number in range(notifications):
            ctx.progress(number, message="a" * (limit // 40))
        return text

    @server.tool
    def sign_in(ctx: Context) -> str:
        ctx.elicit_url("sign in", text, "https://mcp.test/sign-in", done=lambda: False)
        return ""

    server.prompt("prompt")(lambda: text)
    server.resource("text://long", name="resource")(lambda: text)
    token = {**META, "progressToken": 1}
    urls = {**token, META_CLIENT_CAPABILITIES: {"elicitation": {"url": {}}}}
    for body in (
        call("result", meta=token),
        call("sign_in", meta=urls),
        message("prompts/get", name="prompt"),
        message("resources/read", uri="text://long"),
    ):
        request = HttpRequest("POST", headers(body), json.dumps(body), max_response_bytes=limit)
        answer = server.endpoint.respond(request, ports, Invocation("id", 1e18))
        assert (answer.status, len(json.dumps(answer.body)) <= limit) == (200, True)
        assert f"{limit} bytes" in answer.body
        larger = server.endpoint.respond(
            replace(request, max_response_bytes=10 * limit), ports, Invocation("id", 1e18)
        )
        assert text in larger.body
    assert [event for event, _ in observer.failures] == ["result_too_large"] * 4


def test_notifications_do_not_displace_a_result() -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    server = Server("talkative", ports=lambda: ports)

    @server.tool
    def order(ctx: Context) -> str:
        ctx.progress(1, message="a" * 2_000)
        return "ordered"

    body = call("order", meta={**META, "progressToken": 1})
    for limit, is_stream in ((2_000, False), (20_000, True)):
        request = HttpRequest("POST", headers(body), json.dumps(body), max_response_bytes=limit)
        answer = server.endpoint.respond(request, ports, Invocation("id", 1e18))
        assert "ordered" in answer.body
        assert (answer.headers["content-type"] == "text/event-stream") is is_stream
    assert not observer.failures


def test_notifications_are_sent_up_to_the_limit_and_the_log_counts_the_others() -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    server = Server("talkative", ports=lambda: ports)

    @server.tool
    def order(ctx: Context, count: int) -> str:
        for number in range(count):
            ctx.progress(number, message='"' * 100)
        return "ordered"

    body = call("order", {"count": 1_000}, meta={**META, "progressToken": "t"})
    request = HttpRequest("POST", headers(body), json.dumps(body), max_response_bytes=50_000)
    invocation = Invocation("id", 1e18, max_response_bytes=request.max_response_bytes)
    answer = server.endpoint.respond(request, ports, invocation)
    assert 45_000 < len(json.dumps(answer.body)) <= 50_000
    assert "ordered" in answer.body
    [fields] = [fields for _, fields in observer.events if "notifications_dropped" in fields]
    assert answer.body.count("notifications/progress") + fields["notifications_dropped"] == 1_000


@pytest.mark.parametrize("source", ["alb", "alb_multi_value"])
def test_no_response_exceeds_the_limit_of_a_load_balancer(source: str) -> None:
    server = Server("large", ports=make_ports)
    server.tool(name="result")(lambda: "a" * 1_500_000)
    response = server.lambda_handler(sent_by(source, call("result")), None)
    assert len(json.dumps(response)) < 1_000_000
    assert json.loads(response["body"])["result"]["isError"]


def test_an_error_over_the_limit_for_a_legacy_client_is_replaced() -> None:
    observer = RecordingObserver()
    ports = make_ports(observer=observer)
    server = Server("large", ports=lambda: ports)

    @server.tool
    def sign_in(ctx: Context) -> str:
        ctx.elicit_url("sign in", "a" * 5_000, "https://mcp.test/sign-in", done=lambda: False)
        return ""

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sign_in", "arguments": {}}}
    headers = {"mcp-protocol-version": "2025-11-25"}
    codes = []
    for limit in (20_000, 5_000):
        request = HttpRequest("POST", headers, json.dumps(body), max_response_bytes=limit)
        answer = server.endpoint.respond(request, ports, Invocation("id", 1e18))
        assert len(answer.body) <= limit
        codes.append(json.loads(answer.body)["error"]["code"])
    assert codes == [-32042, -32603]
    assert [event for event, _ in observer.failures] == ["result_too_large"]
