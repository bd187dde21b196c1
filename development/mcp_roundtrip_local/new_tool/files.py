"""The files of a new tool: a function that asks one question, its test and its sample events."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from string import Template

from mcp_roundtrip_local.sample_events.messages import call, post

TEXT = "Ask before you count."


def render_files(name: str) -> dict[PurePosixPath, str]:
    """Return the files of a new tool by their paths in the project."""
    return {
        PurePosixPath("functions", name, "app.py"): APP.substitute(name=name),
        PurePosixPath("tests/functions", f"test_{name}.py"): TEST.substitute(name=name, text=TEXT),
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


APP = Template('''\
"""Count the words or the characters of a text, after asking which: an example to replace."""

from enum import StrEnum

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server

server = Server("$name")


class Unit(StrEnum):
    WORDS = "words"
    CHARACTERS = "characters"


class Length(BaseModel):
    length: int = Field(description="The number of words or characters")
    unit: Unit


@server.tool(annotations={"readOnlyHint": True})
def $name(ctx: Context, text: str) -> Length:
    """Count the words or the characters of a text.

    Args:
        text: The text to count in.
    """
    unit = ctx.elicit("unit", "Count words or characters?", Unit)
    counted = text.split() if unit is Unit.WORDS else text
    return Length(length=len(counted), unit=unit)


handler = server.lambda_handler
''')

TEST = Template("""\
import json

import pytest

from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip_local.sample_events.live import development_ports
from mcp_roundtrip_testing import DECLINE, Player, load_module
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
""")
