"""The text of a new tool, which asks one question: its module, its test and its sample events.

A tool with tasks asks before it becomes a task, and counts in a step.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from string import Template

from mcp_roundtrip_tools.events.messages import call, post

TEXT = "Ask before you count."

ENDPOINT = "/mcp"


def render_module(name: str, *, tasks: bool) -> str:
    """Return a module with the tool's function, which the function's module registers."""
    head = "from mcp_roundtrip import Context" + ("\n\nTTL_MS = 3_600_000" if tasks else "")
    return _render(f"{HEAD}{head}\n\n\n{MODELS}{FUNCTION}{TASK if tasks else RETURN}{COUNT}", name, tasks)


def render_app(name: str, *, tasks: bool) -> str:
    """Return the module of a function that has only this tool."""
    head = f'from mcp_roundtrip import Context, Server\n\nserver = Server("{name}")\n'
    handlers = "\n\nhandler = server.lambda_handler\n"
    if tasks:
        head, handlers = f"{head}\nTTL_MS = 3_600_000\n", f"{handlers}worker = server.worker_handler\n"
    task = 'task="optional", ' if tasks else ""
    decorator = f'@server.tool({task}annotations={{"readOnlyHint": True}})\n'
    body = f"{FUNCTION}{TASK if tasks else RETURN}{COUNT}"
    return _render(f"{HEAD}{head}\n\n{MODELS}{decorator}{body}{handlers}", name, tasks)


def render_test(name: str, app: PurePosixPath, levels: int, *, tasks: bool) -> str:
    """Return the test of a tool of the module `app`, whose path starts `levels` folders above the test."""
    imports = "DECLINE, WITH_TASKS, Player, crashes" if tasks else "DECLINE, Player"
    text = TEST + (TASK_TESTS if tasks else "")
    return _render(text, name, tasks, app=str(app), levels=str(levels), imports=imports)


def render_events(name: str) -> dict[str, str]:
    """Return the sample events of a tool by file."""
    events = {
        f"{name}.json": call(name, {"text": TEXT}),
        f"{name}_bad_arguments.json": call(name, {"text": 1}),
    }
    return {
        file: json.dumps(post(ENDPOINT, each), indent=2, ensure_ascii=False) + "\n"
        for file, each in events.items()
    }


def _render(text: str, name: str, tasks: bool, **values: str) -> str:
    after = "in a task, after asking which" if tasks else "after asking which"
    return Template(text).substitute(name=name, text=TEXT, after=after, **values)


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

RETURN = """\
    return Length(length=count(text, unit), unit=unit)
"""

TASK = """\
    ctx.run_as_task(ttl_ms=TTL_MS)
    length: int = ctx.step("count", count, text, unit)
    return Length(length=length, unit=unit)
"""

COUNT = """\


def count(text: str, unit: Unit) -> int:
    return len(text.split() if unit is Unit.WORDS else text)
"""

TEST = """\
from pathlib import Path

import pytest

from mcp_roundtrip_testing import $imports

APP = Path(__file__).parents[$levels] / "$app"

CALL = {"text": "$text"}


@pytest.mark.parametrize(("unit", "length"), [("words", 4), ("characters", 21)])
def test_the_user_chooses_the_unit(unit: str, length: int) -> None:
    asked = Player(APP, always_replay=True).call("$name", CALL)
    assert asked.asked.keys() == {"unit"}
    assert asked.answer(unit=unit).structured == {"length": length, "unit": unit}


def test_a_declined_question_is_a_tool_error() -> None:
    assert Player(APP).call("$name", CALL, unit=DECLINE).failed
"""

TASK_TESTS = """

def result_of_task(play: Player) -> object:
    asked = play.call("$name", CALL)
    return asked.answer(unit="words").task.structured


def test_the_tool_becomes_a_task_after_its_question() -> None:
    assert result_of_task(Player(APP, WITH_TASKS)) == {"length": 4, "unit": "words"}


def test_the_task_ends_wherever_a_worker_is_lost() -> None:
    for play in crashes(lambda: Player(APP, WITH_TASKS)):
        assert result_of_task(play) == {"length": 4, "unit": "words"}
"""
