"""The files of a new tool: a function that asks one question, its test and its sample events.

A tool with tasks asks the same question before it becomes a task, and counts in a step.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from string import Template

from mcp_roundtrip_tools.events.messages import call, post

TEXT = "Ask before you count."


def render_files(name: str, *, tasks: bool = False) -> dict[PurePosixPath, str]:
    """Return the files of a new tool by their paths in the project."""
    app, test = (APP + TASK_BODY, TEST + TASK_TESTS) if tasks else (APP + BODY, TEST)
    parts = {"name": name, "text": TEXT, **(WITH_TASKS if tasks else WITHOUT_TASKS)}
    return {
        PurePosixPath("functions", name, "app.py"): Template(app).substitute(parts),
        PurePosixPath("tests/functions", f"test_{name}.py"): Template(test).substitute(parts),
        **{PurePosixPath("events", name, file): text for file, text in _events(name).items()},
    }


def _events(name: str) -> dict[str, str]:
    path, asks = f"/tools/{name}", call(name, {"text": TEXT})
    events = {
        "call.json": post(path, asks),
        "bad_arguments.json": post(path, call(name, {"text": 1})),
        "missing_capability.json": post(path, call(name, {"text": TEXT}, capabilities={})),
        "direct_call.json": asks,
    }
    return {file: json.dumps(event, indent=2, ensure_ascii=False) + "\n" for file, event in events.items()}


WITHOUT_TASKS = {
    "after": "after asking which",
    "constants": "",
    "task": "",
    "imports": "DECLINE, Player, load_module",
}

WITH_TASKS = {
    "after": "in a task, after asking which",
    "constants": "TTL_MS = 3_600_000\n",
    "task": 'task="optional", ',
    "imports": "DECLINE, WITH_TASKS, Player, crashes, load_module",
}

HEAD = '''\
"""Count the words or the characters of a text, $after: an example to replace."""

from enum import StrEnum

from pydantic import BaseModel, Field

'''

MODELS = """\
class Unit(StrEnum):
    WORDS = "words"
    CHARACTERS = "characters"


class Length(BaseModel):
    length: int = Field(description="The number of words or characters")
    unit: Unit


"""

FUNCTION = '''\
def $name(ctx: Context, text: str) -> Length:
    """Count the words or the characters of a text.

    Args:
        text: The text to count in.
    """
    unit = ctx.elicit("unit", "Count words or characters?", Unit)
'''

APP = f"""\
{HEAD}from mcp_roundtrip import Context, Server

server = Server("$name")
$constants

{MODELS}@server.tool(${{task}}annotations={{"readOnlyHint": True}})
{FUNCTION}"""

RETURN = """\
    return Length(length=count(text, unit), unit=unit)


def count(text: str, unit: Unit) -> int:
    return len(text.split() if unit is Unit.WORDS else text)
"""

BODY = f"""\
{RETURN}

handler = server.lambda_handler
"""

TASK_BODY = """\
    ctx.run_as_task(ttl_ms=TTL_MS)
    length: int = ctx.step("count", count, text, unit)
    return Length(length=length, unit=unit)


def count(text: str, unit: Unit) -> int:
    return len(text.split() if unit is Unit.WORDS else text)


handler = server.lambda_handler
worker = server.worker_handler
"""

TEST = """\
import json

import pytest

from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip_testing import $imports
from mcp_roundtrip_testing.serving import development_ports
from support.project import FUNCTIONS
from support.sample_events import ASKS, EVENTS, TOOL_ERROR, Outcome, outcome

APP = FUNCTIONS / "$name/app.py"


@pytest.fixture
def play() -> Player:
    return Player(APP, always_replay=True)


@pytest.mark.parametrize(("unit", "length"), [("words", 4), ("characters", 21)])
def test_the_user_chooses_the_unit(play: Player, unit: str, length: int) -> None:
    asked = play.call("$name", {"text": "$text"})
    assert asked.asked.keys() == {"unit"}
    assert asked.answer(unit=unit).structured == {"length": length, "unit": unit}


def test_a_declined_question_is_a_tool_error(play: Player) -> None:
    asked = play.call("$name", {"text": "$text"})
    assert asked.answer(unit=DECLINE).failed


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("call.json", Outcome(200, ASKS)),
        ("bad_arguments.json", Outcome(200, TOOL_ERROR)),
        ("missing_capability.json", Outcome(400, -32021)),
        ("direct_call.json", Outcome(None, ASKS)),
    ],
)
def test_a_sample_event_has_the_expected_outcome(file: str, expected: Outcome) -> None:
    event = json.loads((EVENTS / "$name" / file).read_text("utf-8"))
    assert outcome(handle(load_module(APP).server.endpoint, event, None, development_ports)) == expected
"""

TASK_TESTS = """

def result_of_task(play: Player) -> object:
    asked = play.call("$name", {"text": "$text"})
    return asked.answer(unit="words").task.structured


def test_the_tool_becomes_a_task_after_its_question() -> None:
    assert result_of_task(Player(APP, WITH_TASKS)) == {"length": 4, "unit": "words"}


def test_the_task_ends_wherever_a_worker_is_lost() -> None:
    for play in crashes(lambda: Player(APP, WITH_TASKS)):
        assert result_of_task(play) == {"length": 4, "unit": "words"}
"""
