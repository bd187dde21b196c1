"""Which settings the features of a function lack."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip.deployment.needed_settings import find_unset_settings, missing_settings
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.options import Fallback

KEY = "arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/tasks"
COMPLETE = {
    "MCP_AUTH_MODE": "lambda",
    "MCP_SCOPE_CONTEXT_KEY": "scopes",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
    "MCP_STATE_KEY_ARN": KEY,
    "MCP_STATE_ENCRYPTION_KEY_ARN": KEY,
    "MCP_TASK_TABLE": "tasks",
    "MCP_TASK_WORKER": "arn:aws:lambda:eu-west-1:123456789012:function:worker:1",
    "MCP_TASK_QUEUE": QUEUE,
    "MCP_OWNERS": "app_*:live",
}
"""Settings with which every feature can do all that it may do."""


def one_of_each(*channels: Fallback) -> Server:
    server = Server("all", channels=channels)

    @server.tool
    def plain() -> str:
        return ""

    @server.tool
    def asks(ctx: Context) -> bool:
        return ctx.elicit("sure", "Sure?", bool)

    @server.tool(task="optional")
    def lasts(ctx: Context) -> str:
        ctx.run_as_task()
        return ""

    @server.prompt(scopes=["read"])
    def summary() -> str:
        return ""

    return server


def missing(
    needs: Mapping[str, Any], environment: Mapping[str, str] = COMPLETE, **changes: str
) -> dict[str, bool]:
    """Return the missing settings, with whether each is an error, without the `changes` that are empty."""
    settings = load_settings({**environment, **{f"MCP_{name}": value for name, value in changes.items()}})
    found = missing_settings(needs, find_unset_settings(settings))
    return {each.error.setting: each.is_error for each in found}


NEEDS = one_of_each("page").endpoint.needs
WORK = {"work": NEEDS["tasks"]}

ONE_MISSING = {
    "tasks need a table": (NEEDS, "TASK_TABLE", True),
    "tasks need a worker": (NEEDS, "TASK_WORKER", True),
    "a question needs a key": (NEEDS, "STATE_KEY_ARN", False),
    "its encryption needs a key": (NEEDS, "STATE_ENCRYPTION_KEY_ARN", False),
    "what outlives a request needs the audience": (NEEDS, "AUDIENCE", True),
    "scopes need their place": (NEEDS, "SCOPE_CONTEXT_KEY", False),
    "a worker needs the table": (WORK, "TASK_TABLE", True),
    "a front door needs the names of the owners": ({"forwarding": ["a"]}, "OWNERS", True),
    "a front door needs the table to poll": ({"task methods": ["lasts"]}, "TASK_TABLE", True),
    "the page needs a table": ({"page": ["asks"]}, "TASK_TABLE", False),
}


@pytest.mark.parametrize("case", ONE_MISSING)
def test_a_feature_whose_setting_is_missing_is_found(case):
    needs, setting, is_error = ONE_MISSING[case]
    assert missing(needs) == {}
    assert missing(needs, **{setting: ""}) == {f"MCP_{setting}": is_error}


def test_delivery_by_queue_needs_the_queue_and_not_the_worker_which_wakes_no_task_without_it():
    assert missing(NEEDS, TASK_DELIVERY="queue", TASK_WORKER="") == {}
    assert missing(NEEDS, TASK_DELIVERY="queue", TASK_QUEUE="", TASK_WORKER="") == {"MCP_TASK_QUEUE": True}
    assert missing(NEEDS, TASK_QUEUE="") == {}  # the worker function has it
    assert missing(WORK, TASK_WORKER="") == {}
    assert missing(WORK, TASK_WORKER="", TASK_QUEUE="") == {"MCP_TASK_QUEUE": False}


def test_a_front_door_needs_its_owners_and_the_table_of_their_tasks(tmp_path):
    catalog = tmp_path / "catalog.json"
    options = {"task": "required", "asks": True, "channels": ["page"]}
    catalog.write_text(compact_json({"tools": [{"owner": "o", "definition": {"name": "lasts"}, **options}]}))
    needs = FrontDoor("door", catalog).endpoint.needs
    found = missing(needs, {"MCP_AUTH_MODE": "none"})
    assert found == {"MCP_OWNERS": True, "MCP_TASK_TABLE": True}
    assert missing(needs, TASK_WORKER="", STATE_KEY_ARN="") == {}
