"""From Lambda events to Lambda responses."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Server
from mcp_roundtrip.adapters.detect import UnknownEventSource
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from support.deployment import Deployment
from support.json_values import any_json
from support.lambda_context import LambdaContext
from support.messages import call, http_event, message
from support.servers import server_of

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


def test_a_deeply_nested_result_is_returned_to_a_direct_caller():
    def nested():  # an author's function without annotations
        value: list[Any] = []
        for _ in range(80):
            value = [value]
        return {"value": value}

    assert "result" in Deployment(server_of(nested), user=None).invoke(call("nested"))


ANYTHING = any_json()


@given(
    st.fixed_dictionaries(
        {
            "version": st.just("2.0"),
            "requestContext": st.fixed_dictionaries(
                {"http": st.fixed_dictionaries({}, optional={"method": st.just("POST") | ANYTHING})},
                optional={"authorizer": ANYTHING},
            ),
        },
        optional={"headers": ANYTHING, "body": ANYTHING, "isBase64Encoded": ANYTHING},
    )
    | st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | ANYTHING},
        optional={"id": ANYTHING, "method": st.just("tools/call") | ANYTHING, "params": ANYTHING},
    )
    | ANYTHING
)
def test_any_event_gets_a_response_or_fails_as_unknown(event):
    try:
        response = server.lambda_handler(event, LambdaContext())
    except UnknownEventSource:
        return
    json.dumps(response, ensure_ascii=False).encode()
