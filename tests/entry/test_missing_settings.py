"""The first invocation of an environment logs the settings that its features lack."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from mcp_roundtrip import Context, Server, wiring
from support.aws_clients import FUNCTION
from support.logged_lines import logged_lines
from support.messages import call, message

server = Server("x")


@server.tool
def ask(ctx: Context) -> str:
    return ctx.elicit("name", "Who?", str)


@server.tool(task="optional")
def lasting(ctx: Context) -> str:
    ctx.run_as_task()
    return ""


KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"
COMPLETE = {
    "MCP_AUTH_MODE": "none",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
    "MCP_STATE_KEY_ARN": KEY,
    "MCP_STATE_ENCRYPTION_KEY_ARN": KEY,
    "MCP_TASK_TABLE": "tasks",
    "MCP_TASK_WORKER": "arn:aws:lambda:eu-west-1:123456789012:function:worker:1",
    "MCP_TASK_QUEUE": "https://sqs.eu-west-1.amazonaws.com/123456789012/tasks",
}

WORKER = {**COMPLETE, "MCP_TASK_WORKER": ""}

Invoke = Callable[..., list[list[dict[str, Any]]]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that starts an environment with variables, and returns the lines of each event."""
    for name, value in FUNCTION.items():
        monkeypatch.setenv(name, value)

    def run(environment: dict[str, str], *events: Any, handler: Any = server.lambda_handler) -> Any:
        for name in COMPLETE:
            monkeypatch.setenv(name, environment.get(name, ""))
        clear()
        logged = []
        for event in events:
            with suppress(KeyError):  # the worker's event has no task
                handler(event, None)
            logged.append([line for line in logged_lines(capsys) if line["message"] == "setting_missing"])
        return logged

    yield run
    clear()


def clear() -> None:
    wiring.ports.cache_clear()
    wiring.observer.cache_clear()


def test_the_first_request_logs_each_missing_setting_and_no_other_request(invoke: Invoke) -> None:
    first, second, third = invoke(
        {"MCP_AUTH_MODE": "none"}, message("tools/list"), message("tools/list"), call("nothing")
    )
    assert [(line["level"], line["message"], line["reason"]) for line in first] == [
        ("ERROR", "setting_missing", "MCP_TASK_TABLE"),
        ("ERROR", "setting_missing", "MCP_TASK_WORKER"),
        ("ERROR", "setting_missing", "MCP_TASK_QUEUE"),
        ("WARNING", "setting_missing", "MCP_STATE_KEY_ARN"),
        ("WARNING", "setting_missing", "MCP_STATE_ENCRYPTION_KEY_ARN"),
    ]
    assert "cannot ask" in first[3]["problem"]
    assert "correlation_id" in first[3]
    assert (second, third) == ([], [])


def test_a_deployment_with_all_settings_logs_nothing(invoke: Invoke) -> None:
    assert invoke(COMPLETE, message("tools/list")) == [[]]


def test_the_first_event_of_a_worker_logs_what_its_tasks_lack(invoke: Invoke) -> None:
    lacking = {**WORKER, "MCP_TASK_QUEUE": ""}
    first, second = invoke(lacking, {}, {}, handler=server.worker_handler)
    assert [line["reason"] for line in first] == ["MCP_TASK_QUEUE"]
    assert second == []
    assert invoke(WORKER, {}, handler=server.worker_handler) == [[]]


def test_messages_of_a_queue_log_it_once(invoke: Invoke) -> None:
    messages = {"Records": [{"messageId": "1", "body": "{}"}, {"messageId": "2", "body": "{}"}]}
    [lines] = invoke({**WORKER, "MCP_TASK_QUEUE": ""}, messages, handler=server.worker_handler)
    assert [line["reason"] for line in lines] == ["MCP_TASK_QUEUE"]
