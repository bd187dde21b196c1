"""A misconfigured function logs the setting and responds with -32603."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_roundtrip import Context, Server, wiring
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from support.aws_clients import FUNCTION
from support.logged_lines import logged_lines
from support.messages import META, call, http_event, message

BEARER = {
    "MCP_AUTH_MODE": "bearer",
    "MCP_TOKEN_ISSUER": "https://id.test",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
}
NONE = {"MCP_AUTH_MODE": "none"}
STATES = {**NONE, "MCP_ISSUER": "urn:x", "MCP_AUDIENCE": "https://mcp.test/mcp"}
KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"
KEYS = {**STATES, "MCP_STATE_KEY_ARN": KEY}
SIGNED = {**KEYS, "MCP_STATE_ENCRYPTION": "disabled"}
TASKS = {**META, META_CLIENT_CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}}}

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
def log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that sets the environment and returns the settings in new log lines."""
    wiring.ports.cache_clear()

    def set_up(environment: dict[str, str]) -> list[str]:
        for name, value in {**FUNCTION, **environment}.items():
            monkeypatch.setenv(name, value)
        return [line["reason"] for line in logged_lines(capsys) if line["message"] == "misconfigured"]

    yield set_up
    wiring.ports.cache_clear()


AT_ONCE = {
    "no mode": ({}, "MCP_AUTH_MODE"),
    "no such mode": ({"MCP_AUTH_MODE": "open"}, "MCP_AUTH_MODE"),
    "bearer without an issuer": ({**BEARER, "MCP_TOKEN_ISSUER": ""}, "MCP_TOKEN_ISSUER"),
    "bearer without an audience": ({**BEARER, "MCP_AUDIENCE": ""}, "MCP_AUDIENCE"),
    "an audience that is no URL": ({**BEARER, "MCP_AUDIENCE": "mcp.test"}, "MCP_AUDIENCE"),
    "HMAC": ({**BEARER, "MCP_TOKEN_ALGORITHMS": "HS256"}, "MCP_TOKEN_ALGORITHMS"),
    "no signature": ({**BEARER, "MCP_TOKEN_ALGORITHMS": "ES256,none"}, "MCP_TOKEN_ALGORITHMS"),
    "keys without TLS": ({**BEARER, "MCP_TOKEN_JWKS_URI": "http://id.test/keys"}, "MCP_TOKEN_JWKS_URI"),
    "an issuer without an authorization mode that uses it": (
        {**BEARER, "MCP_AUTH_MODE": "none"},
        "MCP_TOKEN_ISSUER",
    ),
    "a context key without an authorizer": ({**NONE, "MCP_SCOPE_CONTEXT_KEY": "x"}, "MCP_SCOPE_CONTEXT_KEY"),
    "malformed owners": ({**NONE, "MCP_OWNERS": "{"}, "MCP_OWNERS"),
    "a malformed count": ({**NONE, "MCP_MAX_ROUNDS": "-1"}, "MCP_MAX_ROUNDS"),
}
"""Environments and the setting in the log."""


@pytest.mark.parametrize("case", AT_ONCE)
def test_the_first_request_is_an_internal_error_and_the_log_names_the_setting(case: str, log: Any) -> None:
    environment, setting = AT_ONCE[case]
    log(environment)
    for body in (message("tools/list", id=7), call("plain", id=7)):
        response = server.lambda_handler(http_event(body), None)
        answer = json.loads(response["body"])
        assert (answer["id"], answer["error"]["code"]) == (7, -32603)
        assert "MCP_" not in response["body"]
    assert log({}) == [setting, setting]


def test_an_invalid_setting_of_a_worker_is_logged(log: Any) -> None:
    environment, setting = AT_ONCE["no such mode"]
    log(environment)
    with pytest.raises(SettingsError):
        server.worker_handler({"task": "T#x"}, None)
    assert log({}) == [setting]


WHEN_NEEDED = {
    "no issuer of states": ({**SIGNED, "MCP_ISSUER": "", "MCP_AUDIENCE": ""}, call("ask"), "MCP_AUDIENCE"),
    "no audience of states": ({**SIGNED, "MCP_AUDIENCE": ""}, call("ask"), "MCP_AUDIENCE"),
    "no key": (STATES, call("ask"), "MCP_STATE_KEY_ARN"),
    "an alias": ({**STATES, "MCP_STATE_KEY_ARN": "alias/x"}, call("ask"), "MCP_STATE_KEY_ARN"),
    "no key to encrypt with": (KEYS, call("ask"), "MCP_STATE_ENCRYPTION_KEY_ARN"),
    "no table": (STATES, call("lasting", meta=TASKS), "MCP_TASK_TABLE"),
}
"""Environments, requests and the setting in the log."""


@pytest.mark.parametrize("case", WHEN_NEEDED)
def test_a_setting_for_some_requests_is_logged_at_the_first_of_them(case: str, log: Any) -> None:
    environment, body, setting = WHEN_NEEDED[case]
    log(environment)
    assert "result" in server.lambda_handler(call("plain"), None)
    answer = server.lambda_handler(body, None)
    assert answer["error"]["code"] == -32603
    assert log({}) == [setting]


def test_a_request_for_metadata_fails_with_an_error_status(log: Any) -> None:
    log({**BEARER, "MCP_TOKEN_ISSUER": ""})
    event = http_event("", method="GET")
    assert server.lambda_handler(event, None)["statusCode"] == 500
