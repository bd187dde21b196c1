"""Every answer of the conformance server is valid on the wire."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mcp_roundtrip.local.catalog import render
from mcp_roundtrip.testing import Player
from mcp_roundtrip.testing.player import Round
from support.wire import assert_valid

APP = Path(__file__).with_name("app.py")
CATALOG = APP.parent / "front_door" / "catalog.json"

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "test"}
ANSWERS: dict[str, Any] = {
    "user_name": {"name": "Ada"},
    "step1": {"name": "Ada"},
    "step2": {"color": "blue"},
    "confirm": {"ok": True},
    "client_roots": {"roots": [{"uri": "file:///engine"}]},
    "capital_question": SAMPLED,
    "greeting": SAMPLED,
}


def rounds(player: Player, tool: str) -> list[Round]:
    """A call of the tool, every question answered."""
    played = [player.call(tool)]
    while asked := played[-1].asked:
        played.append(played[-1].answer(**{key: ANSWERS[key] for key in asked}))
    return played


TOOLS = [tool["name"] for tool in Player(APP).request("tools/list")["result"]["tools"]]


TASKS = {"failing_job", "protocol_error_job", "confirm_delete", "multi_input"}


@pytest.mark.parametrize("tool", sorted(TASKS))
def test_a_tool_that_needs_a_task_refuses_a_client_without_them(tool: str) -> None:
    refused = Player(APP).call(tool)
    assert refused.error["code"] == -32021
    assert_valid("tools/call", refused.message)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in TASKS])
def test_every_round_of_a_tool_is_valid_on_the_wire(tool: str) -> None:
    played = rounds(Player(APP, log_level="debug"), tool)
    for answered in played:
        for message in (*answered.notifications, answered.message):
            assert_valid("tools/call", message)
    assert played[-1].result["resultType"] == "complete"


def test_the_front_doors_catalog_is_fresh() -> None:
    fresh = render(APP.parents[1])
    command = f"python -m mcp_roundtrip.local.catalog --functions tests --output {CATALOG}"
    assert CATALOG.read_text(encoding="utf-8") == fresh, f"stale: run {command}"


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "prompts/list"])
def test_everything_but_a_call_is_valid_on_the_wire(method: str) -> None:
    assert_valid(method, Player(APP).request(method))


def test_a_call_without_the_capability_is_valid_on_the_wire() -> None:
    refused = Player(APP, capabilities={}).call("test_missing_capability")
    assert refused.error["code"] == -32021
    assert_valid("tools/call", refused.message)


def test_the_first_tool_takes_no_arguments() -> None:
    # The suite's header scenario calls it.
    assert not Player(APP).call(TOOLS[0]).failed


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
def test_the_check_refuses_what_is_not_valid(message: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, AssertionError, KeyError)):
        assert_valid("tools/call", message)
