"""SEP-2322 (Multi Round-Trip Requests), section by section."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_roundtrip import Context, Elicit
from mcp_roundtrip_testing import Player
from mcp_roundtrip_tools.events import message, post
from support.examples import WORK_ITEMS
from support.processes import WITHIN_S, invoke, new_process
from support.project import FUNCTIONS
from support.sample_events import environment
from support.servers import server_of


class Login(BaseModel):
    name: str


def build(*logins):
    """Return a build of the tool that asks for these logins in one round."""

    def sign_in(ctx: Context) -> list[str]:
        answers = ctx.ask(
            *(Elicit(f"{login}_login", f"Please provide your {login} username", Login) for login in logins)
        )
        return [answer.name for answer in answers]

    return server_of(sign_in)


def on(player, asked, **names):
    """Retry with these logins on the build of `player`."""
    responses = {key: {"action": "accept", "content": {"name": name}} for key, name in names.items()}
    return player.send_round(asked.method, asked.params, responses, asked.state)


def test_two_builds_behind_a_load_balancer_ask_nothing_twice_and_only_for_missing_answers():
    """They share only the key."""
    old = Player(lambda: build("github", "google"))
    new = Player(lambda: build("github", "microsoft"), key=old.key, clock=old.clock)
    first = old.call("sign_in")
    assert first.asked.keys() == {"github_login", "google_login"}
    second = on(new, first, github_login="octocat", google_login="g")
    assert second.asked.keys() == {"microsoft_login"}
    assert on(old, second).structured == ["octocat", "g"]
    assert on(new, second, microsoft_login="m").structured == ["octocat", "m"]
    first = new.call("sign_in")
    second = on(old, first, github_login="octocat", microsoft_login="m")
    assert second.asked.keys() == {"google_login"}
    assert on(new, second, google_login="g").structured == ["octocat", "m"]


DIALOGUE = json.loads(Path(__file__).with_name("azure_devops_dialogue.json").read_text("utf-8"))
QUESTIONS, ANSWERS = DIALOGUE[::2], DIALOGUE[1::2]

REVISED = {
    'Server("work_items")': 'Server("work_items", version="2.0.0")',
    '    if resolution != "Duplicate":\n': (
        '    if resolution == "Fixed":\n'
        '        ctx.elicit("fixed_in", "Which build has the fix?", str)\n'
        '    if resolution != "Duplicate":\n'
    ),
}


@pytest.fixture(scope="module")
def variables():
    with environment() as variables:
        yield variables


@pytest.fixture(scope="module")
def apps(tmp_path_factory):
    """Return the current build and a build with more questions."""
    folder = tmp_path_factory.mktemp("revised") / "work_items"
    shutil.copytree(FUNCTIONS / "work_items", folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = (folder / "app.py").read_text("utf-8")
    for old, new in REVISED.items():
        assert source.count(old) == 1
        source = source.replace(old, new)
    (folder / "app.py").write_text(source, "utf-8")
    return {"1.0.0": FUNCTIONS / "work_items/app.py", "2.0.0": folder / "app.py"}


def in_a_process(app, request, variables):
    """Return the response of a new process that runs `app`."""
    body = message("tools/call", number=request["id"], **request["params"])
    with new_process(variables) as process:
        response = process.submit(invoke, app, post(WORK_ITEMS, body)).result(WITHIN_S)
    answer: dict[str, Any] = json.loads(response["body"])
    return answer


def essence(value):
    """Return a message without `_meta`, the token and the default mode, which the SEP omits."""
    if isinstance(value, dict):
        return {
            name: essence(member)
            for name, member in value.items()
            if name not in ("_meta", "requestState", "mode")
        }
    return [essence(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("order", "echo"),
    [
        (("1.0.0", "2.0.0", "1.0.0"), "as in the SEP"),
        (("2.0.0", "1.0.0", "2.0.0"), "as in the SEP"),
        (("1.0.0", "2.0.0", "1.0.0"), "every requestState"),
    ],
)
def test_the_azure_devops_dialogue_has_the_messages_of_the_sep(order, echo, apps, variables):
    state = None
    for version, question, expected in zip(order, QUESTIONS, ANSWERS, strict=True):
        params = {name: value for name, value in question["params"].items() if name != "requestState"}
        if state is not None and (echo == "every requestState" or "requestState" in question["params"]):
            params["requestState"] = state
        answer = in_a_process(apps[version], {**question, "params": params}, variables)
        assert essence(answer) == essence(expected)
        assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == version
        state = answer["result"].get("requestState")
