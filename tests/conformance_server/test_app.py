"""Every feature of the conformance server answers. The plugin response_validation checks each message."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mcp_roundtrip_testing import Player, Round
from mcp_roundtrip_tools.catalog.catalog import load_function_servers, render_servers
from support.extension_schemas import assert_valid

APP = Path(__file__).with_name("app.py")
CATALOG = APP.parent / "front_door" / "catalog.json"

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "test"}
ANSWERS: dict[str, Any] = {
    "user_name": {"name": "Ada"},
    "step1": {"name": "Ada"},
    "step2": {"color": "blue"},
    "confirm": {"ok": True},
    "user_context": {"context": "a test"},
    "client_roots": {"roots": [{"uri": "file:///engine"}]},
    "capital_question": SAMPLED,
    "greeting": SAMPLED,
}


ARGUMENTS: dict[str, Any] = {
    "greet": {"name": "Ada"},
    "slow_compute": {"seconds": 0},
    "json_schema_2020_12_tool": {"email": "ada@example.com"},
    "test_x_mcp_header": {"region": "eu"},
    "test_prompt_with_arguments": {"arg1": "a", "arg2": "b"},
    "test_prompt_with_embedded_resource": {"resourceUri": "test://example-resource"},
}


def last_round(played: Round) -> Round:
    """Return the last round of a call with answered questions."""
    while asked := played.asked:
        played = played.answer(**{key: ANSWERS[key] for key in asked})
    return played


def names(method: str, member: str, called: str = "name") -> list[str]:
    """Return the names in the list of that method."""
    return [each[called] for each in Player(APP).request(method)["result"][member]]


TOOLS = names("tools/list", "tools")
TASKS = {"failing_job", "protocol_error_job", "confirm_delete", "multi_input"}


@pytest.mark.parametrize("tool", [*sorted(TASKS), "test_missing_capability"])
def test_a_tool_refuses_clients_without_what_it_requires(tool):
    assert Player(APP, capabilities={}).call(tool).error["code"] == -32021


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in TASKS])
def test_a_tool_asks_and_returns(tool):
    last = last_round(Player(APP, log_level="debug").call(tool, ARGUMENTS.get(tool)))
    assert last.result["resultType"] == "complete"
    assert last.failed is (tool == "test_error_handling")


@pytest.mark.parametrize("prompt", names("prompts/list", "prompts"))
def test_a_prompt_asks_and_returns(prompt):
    assert last_round(Player(APP).prompt(prompt, ARGUMENTS.get(prompt))).messages


def test_the_front_doors_catalog_is_fresh():
    fresh = render_servers(load_function_servers(APP.parents[1]))
    command = f"python -m mcp_roundtrip_tools catalog --functions tests --output {CATALOG}"
    assert CATALOG.read_text(encoding="utf-8") == fresh, f"stale: run {command}"


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {"content": []}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "nope"}], "resultType": "complete"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32021, "message": "no data"}},
        {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
        {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
    ],
)
def test_the_validation_refuses_an_invalid_response(message):
    with pytest.raises((ValidationError, AssertionError, KeyError)):
        assert_valid("tools/call", message)
