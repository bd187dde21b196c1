"""Every round of every example tool is valid on the wire."""

from typing import Any

import pytest

from mcp_roundtrip_testing import DECLINE, Player
from support.mcp_schema import assert_valid
from support.project import FUNCTIONS

pytest_plugins = ["support.example_services"]

pytestmark = pytest.mark.usefixtures("example_services")

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "test"}

CALLS: list[tuple[str, str, dict[str, Any], list[dict[str, Any]]]] = [
    ("weather", "get_weather", {"location": "Tokyo"}, []),
    ("weather", "get_weather", {"location": "Hyderabad"}, [{"place": "Hyderabad, Telangana, India"}]),
    ("weather", "get_weather", {"location": "Hyderabad"}, [{"place": DECLINE}]),
    ("weather", "get_weather", {"location": "Atlantis"}, []),
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


READS = [
    ("weather", "weather://forecast/Tokyo%2C%20Japan"),
    ("weather", "weather://forecast/Atlantis"),
    ("provision", "provision://prices"),
]


@pytest.mark.parametrize(("function", "uri"), READS)
def test_every_read_is_valid(function: str, uri: str) -> None:
    assert_valid("resources/read", Player(FUNCTIONS / function / "app.py").read(uri).message)


@pytest.mark.parametrize("given", [{"work_item": "Task #4410: Move the nightly build to the new agents"}, {}])
def test_every_round_of_a_prompt_is_valid(given: dict[str, Any]) -> None:
    played = Player(FUNCTIONS / "work_items/app.py").prompt("triage")
    assert_valid("prompts/get", played.message)
    answered = played.answer(**given) if given else played.answer(work_item=DECLINE)
    assert_valid("prompts/get", answered.message)


LISTS = {
    "weather": ["tools/list", "resources/templates/list"],
    "work_items": ["tools/list", "prompts/list"],
    "provision": ["tools/list", "resources/list"],
    "summarize": ["tools/list"],
    "approval": ["tools/list"],
}


@pytest.mark.parametrize(
    ("function", "method"),
    [(function, method) for function, lists in LISTS.items() for method in ["server/discover", *lists]],
)
def test_discovery_and_the_lists_are_valid(function: str, method: str) -> None:
    message = Player(FUNCTIONS / function / "app.py").request(method)
    assert "result" in message
    assert_valid(method, message)
