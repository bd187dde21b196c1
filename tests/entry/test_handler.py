"""From Lambda events to Lambda responses."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from support.deployment import Deployment
from support.lambda_context import LambdaContext
from support.messages import call, http_event, message

CLOCK = FakeClock()
PORTS = make_ports(clock=CLOCK)
server = Server("test", ports=lambda: PORTS)


@server.tool
def remaining(ctx: Context) -> int:
    return ctx.remaining_ms


def structured(event, context):
    response = server.lambda_handler(event, context)
    body = json.loads(response["body"]) if "body" in response else response
    return body["result"]["structuredContent"]


def forwarded(deadline_ms):
    """Return the context of a call whose front door waits until this time."""
    return LambdaContext(CLOCK, 20_000, custom={"mcpDeadlineMs": deadline_ms})


def test_a_direct_caller_is_anonymous_and_refused_if_callers_must_be_identified():
    closed = Deployment(Server("x"), mode=AuthMode.IAM)
    assert "error" in closed.invoke(message("tools/list"))


@pytest.mark.parametrize(
    ("event", "context", "remaining_ms"),
    [
        (call("remaining"), LambdaContext(CLOCK, 20_000), 19_000),
        (http_event(call("remaining")), LambdaContext(CLOCK, 20_000), 19_000),
        (http_event(call("remaining")), LambdaContext(CLOCK), 29_000),
        (http_event(call("remaining")), forwarded(CLOCK.now * 1000 + 5_000), 4_000),
        (call("remaining"), None, 899_000),
        (call("remaining"), LambdaContext(CLOCK, 10), 0),
        (call("remaining"), forwarded("soon"), 19_000),
    ],
)
def test_the_budget_is_the_smallest_limit_minus_a_margin(event, context, remaining_ms):
    assert structured(event, context) == remaining_ms


@pytest.mark.parametrize(
    "event",
    [
        message("\ud800"),
        call("\ud800"),
        message("tools/list", id="\ud800"),
        call("remaining", {"x": float("nan")}),
        {"jsonrpc": "2.0", "id": float("inf"), "method": "tools/list"},
    ],
)
def test_a_direct_message_with_a_lone_surrogate_is_refused_in_valid_json(event):
    answer = server.lambda_handler(event, LambdaContext())
    assert answer["error"]["code"] in (-32700, -32600, -32602, -32601)
    json.dumps(answer, ensure_ascii=False).encode()
