"""A function whose settings are wrong or missing: what it logs, and how it responds."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.adapters.detect import UnknownEventSource
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.internal_errors import SettingsError
from support.aws_clients import FUNCTION
from support.logged_lines import logged_lines
from support.messages import call, http_event, message

BEARER = {
    "MCP_AUTH_MODE": "bearer",
    "MCP_TOKEN_ISSUER": "https://id.test",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
}
NONE = {"MCP_AUTH_MODE": "none"}
KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"
WITHOUT_QUEUE = {
    **NONE,
    "MCP_ISSUER": "urn:x",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
    "MCP_STATE_KEY_ARN": KEY,
    "MCP_STATE_ENCRYPTION_KEY_ARN": KEY,
    "MCP_TASK_TABLE": "tasks",
}

server = Server("x")


@server.tool
def ask(ctx: Context) -> str:
    return ctx.elicit("name", "Who?", str)


@server.tool(task="required")
def lasting(ctx: Context) -> str:
    ctx.run_as_task()
    return ""


@server.tool
def plain() -> str:
    return ""


@pytest.fixture
def start(monkeypatch):
    """Return a function that starts an execution environment with these variables."""

    def clear() -> None:
        wiring.ports.cache_clear()
        wiring.observer.cache_clear()

    def begin(environment: dict[str, str]) -> None:
        for name, value in {**FUNCTION, **environment}.items():
            monkeypatch.setenv(name, value)
        clear()

    yield begin
    clear()


@pytest.fixture
def lines(capsys):
    """Return a function that returns the new log lines of an event."""
    return lambda name: [line for line in logged_lines(capsys) if line["message"] == name]


def reasons(lines):
    return [line["reason"] for line in lines]


AT_ONCE = {
    "no mode": ({}, "MCP_AUTH_MODE"),
    "no such mode": ({"MCP_AUTH_MODE": "open"}, "MCP_AUTH_MODE"),
    "bearer without an issuer": ({**BEARER, "MCP_TOKEN_ISSUER": ""}, "MCP_TOKEN_ISSUER"),
    "bearer without an audience": ({**BEARER, "MCP_AUDIENCE": ""}, "MCP_AUDIENCE"),
    "malformed owners": ({**NONE, "MCP_OWNERS": "{"}, "MCP_OWNERS"),
}
"""Environments and the setting in the log."""


@pytest.mark.parametrize("case", AT_ONCE)
def test_the_first_request_is_an_internal_error_and_the_log_names_the_setting(case, start, lines):
    environment, setting = AT_ONCE[case]
    start(environment)
    for body in (message("tools/list", id=7), call("plain", id=7)):
        response = server.lambda_handler(http_event(body), None)
        answer = json.loads(response["body"])
        assert (answer["id"], answer["error"]["code"]) == (7, -32603)
        assert "MCP_" not in response["body"]
    assert reasons(lines("misconfigured")) == [setting, setting]
    notification = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert server.lambda_handler(http_event(notification, headers={}), None)["statusCode"] == 202
    answer = json.loads(server.lambda_handler(http_event("{"), None)["body"])
    assert answer["error"]["code"] == -32700


def test_an_invalid_setting_of_a_worker_is_logged(start, lines):
    environment, setting = AT_ONCE["no such mode"]
    start(environment)
    with pytest.raises(SettingsError):
        server.worker_handler({"task": "T#x"}, None)
    assert reasons(lines("misconfigured")) == [setting]


def test_a_request_for_a_worker_fails_with_an_error_that_says_what_to_invoke(start, lines):
    start(WITHOUT_QUEUE)
    with pytest.raises(UnknownEventSource, match="lambda_handler"):
        server.worker_handler(http_event(message("tools/list")), None)
    assert len(lines("unknown_event_source")) == 1


def test_a_request_for_metadata_fails_with_an_error_status(start):
    start({**BEARER, "MCP_TOKEN_ISSUER": ""})
    event = http_event("", method="GET")
    assert server.lambda_handler(event, None)["statusCode"] == 500


def test_the_first_request_logs_each_missing_setting_and_no_other_request(start, lines):
    start(NONE)
    server.lambda_handler(message("tools/list"), None)
    first = lines("setting_missing")
    assert [(line["level"], line["reason"]) for line in first] == [
        ("ERROR", "MCP_TASK_TABLE"),
        ("ERROR", "MCP_TASK_WORKER"),
        ("ERROR", "MCP_TASK_QUEUE"),
        ("WARNING", "MCP_STATE_KEY_ARN"),
        ("WARNING", "MCP_STATE_ENCRYPTION_KEY_ARN"),
    ]
    assert "cannot ask" in first[3]["problem"]
    assert "correlation_id" in first[3]
    for request in (message("tools/list"), call("nothing")):
        server.lambda_handler(request, None)
    assert lines("setting_missing") == []
