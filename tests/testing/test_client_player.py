"""Calls as released clients, their models and their users carry them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip_testing import CANCEL, DECLINE, CallFailed, Player

ADA: Mapping[str, Any] = {"jwt": {"claims": {"iss": "https://id.test", "sub": "ada"}}}
SIZE = {"vcpus": 4}


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


@server.tool(task="required")
def takes_long(ctx: Context) -> str:
    ctx.run_as_task()
    return ctx.elicit("word", "Which word?", str)


def as_ada(client: str, **ports: Any) -> Player:
    """A player of this client, whose user has signed in."""
    signed_in = {"auth": EventAuthenticator(AuthMode.JWT), "max_rounds": 50}
    return Player(server, client=client, authorizer=ADA, ports={**signed_in, **ports})


@pytest.mark.parametrize(
    ("client", "name", "forms"),
    [
        ("claude-code", "claude-code", True),
        ("chatgpt", "openai-mcp (ChatGPT)", True),
        ("vscode", "Visual Studio Code", True),
        ("cursor", "cursor-vscode", True),
    ],
)
def test_it_opens_and_declares_as_the_client_does(client: str, name: str, forms: bool) -> None:
    assert as_ada(client).call("describe_client").structured == {"name": name, "forms": forms}


def test_a_client_that_shows_forms_is_asked_in_rounds() -> None:
    played = as_ada("claude-code").call("provision", {"name": "db"}, size=SIZE, keep=True)
    assert played.channels == ("client", "client")
    assert played.structured == {"size": "4 small", "keep": "True"}


@pytest.mark.parametrize("client", ["chatgpt", "vscode", "codex", "opencode"])
def test_the_model_of_another_client_passes_the_answers_on(client: str) -> None:
    played = as_ada(client).call("provision", {"name": "db"}, size=SIZE, keep=True)
    assert played.channels == ("model", "model")
    assert played.structured == {"size": "4 small", "keep": "True"}


def test_a_user_who_declines_is_heard_through_the_model() -> None:
    played = as_ada("chatgpt").call("provision", {"name": "db"}, size=DECLINE)
    assert (played.channels, played.failed) == (("model",), True)


def test_a_program_without_a_model_answers_nothing() -> None:
    with pytest.raises(CallFailed, match="you answered: size"):
        as_ada("inspector").call("provision", {"name": "db"}, size=SIZE)


def test_a_call_waits_for_the_answers_that_are_missing() -> None:
    asked = as_ada("claude-code").call("provision", {"name": "db"}, size=SIZE)
    assert asked.question("keep") == "Keep it?"
    done = asked.answer(keep=False)
    assert done.channels == ("client", "client")
    assert done.structured["keep"] == "False"


def test_an_answer_to_a_question_that_is_not_asked_fails_the_test() -> None:
    with pytest.raises(CallFailed, match="asked: keep, size; you answered: size, keep, other"):
        as_ada("claude-code").call("provision", {"name": "db"}, size=SIZE, keep=True, other=1)


def test_a_client_that_follows_rounds_without_questions_finishes() -> None:
    assert as_ada("claude-code").call("pause", {"count": 12}).text == "resumed"


def test_a_client_gives_up_after_its_last_round() -> None:
    assert as_ada("python-sdk").call("pause", {"count": 12}).is_checkpoint


def test_a_client_that_breaks_on_rounds_without_questions_never_gets_one() -> None:
    played = as_ada("claude.ai").call("pause", {"count": 2})
    assert not played.is_checkpoint


def test_a_user_visits_a_page() -> None:
    VISITED.clear()
    played = as_ada("claude-code").call("sign_in", page=VISITED.append)
    assert (played.channels, played.text, VISITED) == (("client",), "signed in", ["https://id.test/"])


def test_the_error_that_requires_a_url_leads_to_the_page_and_to_another_call() -> None:
    VISITED.clear()
    played = as_ada("python-sdk-initialize").call("sign_in", page=VISITED.append)
    assert (played.channels, played.text, VISITED) == (("client",), "signed in", ["https://id.test/"])


def test_without_a_visit_the_call_ends_in_the_error() -> None:
    VISITED.clear()
    played = as_ada("python-sdk-initialize").call("sign_in")
    assert played.error["code"] == -32042
    assert played.channels == ()


def test_a_client_with_tasks_follows_one() -> None:
    played = as_ada("strands-tasks").call("takes_long", word="whale")
    assert played.channels == ("client",)
    assert played.task.text == "whale"


def test_a_player_without_a_profile_counts_its_own_channel() -> None:
    played = Player(server).call("provision", {"name": "db"}, size=SIZE, keep=CANCEL)
    assert played.channels == ("client", "client")


def test_the_profile_of_an_unknown_client_is_an_error() -> None:
    with pytest.raises(ValueError, match="claude-code"):
        Player(server, client="claude code")
