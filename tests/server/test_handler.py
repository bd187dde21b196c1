"""From Lambda events to Lambda responses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth import Authenticator, AuthMode
from mcp_roundtrip.errors import SettingsError
from mcp_roundtrip.server.ports import Ports
from mcp_roundtrip.testing import FakeClock
from mcp_roundtrip.testing.environment import make_ports
from support.messages import call, http_event, message


@dataclass
class LambdaContext:
    aws_request_id: str = "request-1"
    remaining_ms: int = 20_000
    custom: dict[str, Any] = field(default_factory=dict)

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms

    @property
    def client_context(self) -> Any:
        return self if self.custom else None


CLOCK = FakeClock()
PORTS = make_ports(clock=CLOCK)
server = Server("test", ports=lambda: PORTS)


@server.tool
def remaining(ctx: Context) -> int:
    return ctx.remaining_ms


@server.tool
def request_id(ctx: Context) -> str:
    return str(ctx.lambda_context.aws_request_id)


def structured(event: Any, context: Any) -> Any:
    response = server.lambda_handler(event, context)
    body = json.loads(response["body"]) if "body" in response else response
    return body["result"]["structuredContent"]


def test_a_bare_message_is_answered_with_a_bare_message() -> None:
    answer = server.lambda_handler(message("tools/list"), LambdaContext())
    assert answer["jsonrpc"] == "2.0"
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["remaining", "request_id"]


def test_a_bare_notification_is_answered_with_nothing() -> None:
    assert server.lambda_handler({"jsonrpc": "2.0", "method": "notifications/x"}, LambdaContext()) is None


def test_a_direct_caller_is_anonymous_and_refused_where_callers_must_be_known() -> None:
    ports = make_ports(auth=Authenticator(AuthMode.IAM))
    closed = Server("x", ports=lambda: ports)
    assert "error" in closed.lambda_handler(message("tools/list"), LambdaContext())


def test_the_lambda_context_reaches_the_tool() -> None:
    answer = server.lambda_handler(call("request_id"), LambdaContext())
    assert answer["result"]["content"][0]["text"] == "request-1"


@pytest.mark.parametrize(
    ("event", "context", "remaining_ms"),
    [
        (call("remaining"), LambdaContext(remaining_ms=20_000), 19_000),
        (http_event(call("remaining")), LambdaContext(remaining_ms=20_000), 19_000),
        (http_event(call("remaining")), LambdaContext(remaining_ms=900_000), 29_000),
        (
            http_event(call("remaining")),
            LambdaContext(custom={"mcpDeadlineMs": CLOCK.now * 1000 + 5_000}),
            4_000,
        ),
        (call("remaining"), None, 899_000),
        (call("remaining"), LambdaContext(remaining_ms=10), 0),
        (call("remaining"), LambdaContext(custom={"mcpDeadlineMs": "soon"}), 19_000),
    ],
)
def test_the_budget_is_the_least_of_all_limits_less_a_margin(
    event: Any, context: Any, remaining_ms: int
) -> None:
    assert structured(event, context) == remaining_ms


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        None,
        "text",
        {"Records": []},
        {"version": "1.0", "httpMethod": "POST"},
        {"version": "2.0", "requestContext": {}},
        {"version": "2.0", "requestContext": None},
    ],
)
def test_an_event_of_no_known_source_is_answered_with_what_was_expected(event: Any) -> None:
    response = server.lambda_handler(event, LambdaContext())
    assert response["statusCode"] == 400
    assert "payload 2.0" in json.loads(response["body"])["error"]["message"]


def test_a_missing_setting_is_an_internal_error_that_is_named_only_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def misconfigured() -> Ports:
        raise SettingsError("MCP_AUTH_MODE", "Field required")

    response = Server("x", ports=misconfigured).lambda_handler(
        http_event(message("tools/list", id=7)), LambdaContext()
    )
    body = json.loads(response["body"])
    assert (body["id"], body["error"]["code"]) == (7, -32603)
    assert "MCP_AUTH_MODE" not in body["error"]["message"]
    assert "request-1" in body["error"]["message"]
    assert "MCP_AUTH_MODE" in caplog.text
