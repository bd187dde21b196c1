"""Every round of every example tool is valid on the wire."""

from typing import Any

import pytest

from mcp_roundtrip.testing import DECLINE, Player
from support.functions import FUNCTIONS
from support.wire import assert_valid

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "test"}

CALLS: list[tuple[str, str, dict[str, Any], list[dict[str, Any]]]] = [
    ("weather", "get_weather", {"location": "Tokyo", "month": 1}, []),
    ("weather", "get_weather", {"location": "Hyderabad", "month": 1}, [{"place": "Hyderabad, India"}]),
    ("weather", "get_weather", {"location": "Hyderabad", "month": 1}, [{"place": DECLINE}]),
    ("weather", "get_weather", {"location": "Hyderabad", "month": 13}, []),
    (
        "work_items",
        "update_work_item",
        RESOLVE,
        [{"resolution": {"resolution": "Duplicate"}}, {"duplicate_of": {"duplicateOfId": 4301}}],
    ),
    ("work_items", "update_work_item", {**RESOLVE, "workItemId": 1}, []),
    ("summarize", "summarize", {"text": "Long."}, [{"summary": SAMPLED, "roots": {"roots": []}}]),
]


@pytest.mark.parametrize(("function", "tool", "arguments", "answers"), CALLS)
def test_every_round_is_valid(
    function: str, tool: str, arguments: dict[str, Any], answers: list[dict[str, Any]]
) -> None:
    played = Player(FUNCTIONS / function / "app.py").call(tool, arguments)
    assert_valid("tools/call", played.message)
    for given in answers:
        played = played.answer(**given)
        assert_valid("tools/call", played.message)
    assert played.result["resultType"] == "complete"


@pytest.mark.parametrize("function", ["weather", "work_items", "summarize"])
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_discovery_and_the_list_are_valid(function: str, method: str) -> None:
    assert_valid(method, Player(FUNCTIONS / function / "app.py").request(method))
