"""Calls as released clients, their models and their users carry them out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Elicit, Server
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip_testing import CANCEL, DECLINE, CallFailed, FakeClock, Player
from mcp_roundtrip_testing.task_table import TaskTable

ADA: Mapping[str, Any] = {"jwt": {"claims": {"iss": "https://id.test", "sub": "ada"}}}
SIZE = {"vcpus": 4}
WITHOUT_FORMS = ("chatgpt", "vscode", "codex", "opencode")


class Size(BaseModel):
    vcpus: int
    tier: str = "small"


server = Server("x", channels=("model",))


@server.tool
def provision(ctx: Context, name: str) -> dict[str, str]:
    size = ctx.elicit("size", f"How large is {name}?", Size)
    keep = ctx.elicit("keep", "Keep it?", bool, user_only=False)
    return {"size": f"{size.vcpus} {size.tier}", "keep": str(keep)}


@server.tool
def describe_client(ctx: Context) -> dict[str, Any]:
    return {"name": (ctx.client or {}).get("name"), "forms": ctx.supports("elicitation.form")}


@server.tool
def pause(ctx: Context, count: int) -> str:
    for number in range(count):
        ctx.step(f"step {number}", str, number)
        ctx.checkpoint(needs_ms=60_000)
    return "resumed"


@server.tool
def sign_in(ctx: Context) -> str:
    ctx.elicit_url("page", "Sign in", "https://id.test/", done=lambda: "https://id.test/" in VISITED)
    return "signed in"


VISITED: list[str] = []


@server.prompt()
def explain(topic: str) -> str:
    return f"Explain {topic}."


@server.resource("notes://{topic}")
def notes(topic: str) -> str:
    return f"about {topic}"


@server.tool(task="required")
def sleeps(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.sleep("nap", 60_000)
    word = ctx.elicit("word", "Which word?", str)
    ctx.sleep("second nap", 60_000)
    return word


def as_ada(client: str, source: Server = server) -> Player:
    """Return a player of this client, whose user has signed in."""
    ports = {"auth": EventAuthenticator(AuthMode.JWT), "max_rounds": 50}
    return Player(source, client=client, authorizer=ADA, ports=ports)


def test_it_opens_and_declares_as_the_client_does():
    names = {"chatgpt": "openai-mcp (ChatGPT)", "vscode": "Visual Studio Code", "cursor": "cursor-vscode"}
    for client, name in {"claude-code": "claude-code", **names}.items():
        assert as_ada(client).call("describe_client").structured == {"name": name, "forms": True}


@pytest.mark.parametrize(
    ("client", "channel"), [("claude-code", "client"), *((each, "model") for each in WITHOUT_FORMS)]
)
def test_a_client_shows_forms_or_its_model_passes_the_answers_on(client, channel):
    played = as_ada(client).call("provision", {"name": "db"}, size=SIZE, keep=True)
    assert played.channels == (channel, channel)
    assert played.structured == {"size": "4 small", "keep": "True"}


def test_a_program_without_a_model_answers_nothing():
    with pytest.raises(CallFailed, match="you answered: size"):
        as_ada("inspector").call("provision", {"name": "db"}, size=SIZE)


def test_an_answer_to_a_question_that_is_not_asked_fails_the_test():
    with pytest.raises(CallFailed, match=r": keep, size; .*: size, keep, other"):
        as_ada("claude-code").call("provision", {"name": "db"}, size=SIZE, keep=True, other=1)
    asked = as_ada("claude-code").call("provision", {"name": "db"}, size=SIZE)
    with pytest.raises(CallFailed, match=r": keep; .*: kept"):
        asked.answer(kept=True)


@pytest.mark.parametrize("client", ["claude-code", "vscode"])
def test_prompts_and_resources_are_played_too(client):
    play = as_ada(client)
    assert "whales" in str(play.prompt("explain", {"topic": "whales"}).messages)
    assert play.read("notes://whales").contents[0]["text"] == "about whales"


@pytest.mark.parametrize("client", ["claude-code", "inspector-tasks", "python-sdk"])
def test_a_client_finishes_in_its_last_round_or_gives_up(client):
    assert as_ada(client).call("pause", {"count": 10}).text == "resumed"
    assert as_ada(client).call("pause", {"count": 11}).is_checkpoint


def test_without_a_visit_the_call_ends_in_the_error():
    VISITED.clear()
    played = as_ada("python-sdk-initialize").call("sign_in")
    assert played.error["code"] == -32042
    assert played.channels == ()


def test_a_client_with_tasks_polls_one_that_sleeps():
    played = as_ada("strands-tasks").call("sleeps", word="whale")
    assert (played.channels, played.task.text) == (("client",), "whale")


def test_a_player_without_a_profile_counts_its_own_channel():
    played = Player(server).call("provision", {"name": "db"}, size=SIZE, keep=CANCEL)
    assert played.channels == ("client", "client")


def test_a_client_that_is_unknown_or_would_replay_every_step_is_an_error():
    with pytest.raises(ValueError, match="always_replay"):
        Player(server, client="claude.ai", always_replay=True)
    for name, reason in {"claude code": "claude-code", "../profiles/claude.ai": "/claude.ai'; "}.items():
        with pytest.raises(ValueError, match=reason):
            Player(server, client=name)


def test_a_caller_whom_no_authenticator_identifies_is_an_error():
    with pytest.raises(ValueError, match="EventAuthenticator"):
        Player(server, authorizer=ADA)


class Everything(BaseModel):
    text: Annotated[str, Field(max_length=50)]
    tags: Annotated[list[Literal["red", "green", "blue"]], Field(min_length=1)]
    level: Literal["low", "high"]
    count: int
    ratio: float
    when: datetime
    sure: bool
    note: str = ""


ANSWER = {
    "text": "Zoë & Ada <3",
    "tags": ["red", "blue"],
    "level": "high",
    "count": -4,
    "ratio": 0.5,
    "when": "2026-11-22T18:00:00+02:00",
    "sure": True,
}

channels = Server("channels", channels=("app", "page"))


@channels.tool
def ask_everything(ctx: Context) -> dict[str, Any]:
    return ctx.elicit("all", "Everything?", Everything).model_dump(mode="json")


@channels.tool
def ask_twice(ctx: Context, name: str) -> dict[str, Any]:
    first, second = ctx.ask(Elicit("a", f"A of {name}?", int), Elicit("b", "B?", str))
    ctx.step("made", str, name)
    return {"a": first, "b": second, "keep": ctx.confirm("keep", "Keep it?")}


channels.tool(sign_in)


@pytest.mark.parametrize(
    ("client", "channel"),
    [("claude.ai", "app"), ("cursor", "page"), ("vscode", "app"), ("claude.ai-without-app", "page")],
)
def test_every_kind_of_field_is_filled_in(client, channel):
    played = as_ada(client, channels).call("ask_everything", all=ANSWER)
    assert played.channels == (channel,)
    assert played.structured == {**ANSWER, "note": ""}


@pytest.mark.parametrize(("client", "channel"), [("claude.ai", "app"), ("codex", "page")])
def test_a_user_declines_and_the_model_reads_it(client, channel):
    played = as_ada(client, channels).call("ask_twice", {"name": "x"}, a=DECLINE, b=DECLINE)
    assert (played.channels, played.failed) == ((channel,), True)


def test_a_user_declines_through_the_model():
    played = as_ada("chatgpt").call("provision", {"name": "db"}, size=DECLINE)
    assert (played.channels, played.failed) == (("model",), True)


@pytest.mark.parametrize("client", ["claude.ai", "codex"])
def test_a_question_waits_until_its_user_answers(client):
    play = as_ada(client, channels)
    asked = play.call("ask_twice", {"name": "x"})
    assert asked.asked.keys() == {"a", "b"}
    assert asked.question("a") == "A of x?"
    confirm = asked.answer(a=1, b="two")
    assert confirm.question("keep") == "Keep it?"
    assert confirm.answer(keep=False).structured == {"a": 1, "b": "two", "keep": False}


@pytest.mark.parametrize(
    ("client", "source", "channel"),
    [
        ("claude-code", server, "client"),
        ("python-sdk-initialize", server, "client"),
        ("claude.ai", channels, "app"),
        ("codex", channels, "page"),
    ],
)
def test_a_user_visits_a_page_that_a_question_an_error_or_a_form_names(client, source, channel):
    VISITED.clear()
    played = as_ada(client, source).call("sign_in", page=VISITED.append)
    assert (played.channels, played.text, VISITED) == ((channel,), "signed in", ["https://id.test/"])


def test_the_model_of_an_anonymous_user_continues_the_call_with_its_code():
    played = Player(channels, client="claude.ai").call("ask_twice", {"name": "x"}, a=1, b="two", keep=True)
    assert played.channels == ("app", "app")
    assert played.structured["keep"] is True


def test_anonymous_users_of_the_earlier_versions_are_told_apart_by_their_sessions():
    clock = FakeClock()
    table = TaskTable(clock)
    first, second = (Player(channels, client="codex", clock=clock, ports={"tasks": table}) for _ in range(2))
    waiting = first.call("ask_twice", {"name": "x"})
    other = second.call("ask_twice", {"name": "x"}, a=7, b="seven", keep=False)
    assert other.structured["a"] == 7
    assert waiting.answer(a=1, b="two", keep=True).structured["a"] == 1
