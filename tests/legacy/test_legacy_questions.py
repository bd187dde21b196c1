"""What becomes of questions that a client cannot be asked in the middle of a call."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_roundtrip import Context, ElicitUrl, MissingClientCapability, Sampled, Server
from support.deployment import legacy
from support.documents import code_blocks
from support.json_values import any_json
from support.servers import server_of


class Size(BaseModel):
    vcpus: int
    region: str = "eu"


def size(ctx: Context, name: str) -> dict[str, Any]:
    answer = ctx.elicit("size", f"How large is {name}?", Size)
    # A plan is no more than text, so a model may answer.
    keep = ctx.elicit("keep", f"{answer.vcpus} CPUs. Keep it?", bool, default=False, user_only=False)
    return {"vcpus": answer.vcpus, "kept": keep}


def guess(ctx: Context) -> str:
    return ctx.elicit("number", "Which number?", int, default=7) * "x"


def summarize(ctx: Context) -> str:
    fallback = Sampled("assistant", {"type": "text", "text": "local"}, "none")
    return ctx.sample("summary", "Summarize.", max_tokens=10, default=fallback).text


def serving(*tools, user=None, **options):
    return legacy(server_of(*tools, **options), user=user)


def test_defaults_are_used_unless_the_author_chooses_otherwise():
    for options in ({}, {"channels": ("default",)}):
        client = serving(guess, size, summarize, pay, **options)
        assert client.text("guess") == "x" * 7
        assert client.text("summarize") == "local"
        assert client.text("pay", to="eve", amount=5000) == "not paid, for nothing"
        assert "How large is db?" in client.error_text("size", name="db"), "it has no default"
    server = Server("asks", channels=("default",))
    server.tool(name="strict", channels=())(guess)
    assert "Which number?" in legacy(server).error_text("strict")


def test_the_error_of_a_question_names_the_capabilities_that_it_needs():
    def look(ctx: Context, after_step: bool) -> str:
        if after_step:
            ctx.step("work", lambda: None)
        tools = [{"name": "look", "inputSchema": {"type": "object"}}]
        return ctx.sample("summary", "Summarize.", max_tokens=10, tools=tools).text

    def view(ctx: Context) -> None:
        ctx.request("view", "com.example/view", {})

    client = serving(look, size, view, namespaced_requests=True, channels=())
    for after_step in (False, True):
        assert "A client that supports sampling.tools in MCP" in client.error_text(
            "look", after_step=after_step
        )
    assert "supports elicitation.form in MCP" in client.error_text("size", name="db")
    assert "supports extensions.com.example/view in MCP" in client.error_text("view")


def through_model(*tools, **options):
    return serving(*tools, channels=("model",), **options)


@pytest.mark.parametrize(
    "answer",
    [{"value": True}, True, {"action": "accept", "content": {"value": True}}],
    ids=["content", "value", "ElicitResult"],
)
def test_answers_accumulate_in_the_arguments_and_may_be_spelled_in_several_ways(answer):
    client = through_model(size)
    answers: dict[str, Any] = {"size": {"vcpus": 4}}
    assert "4 CPUs. Keep it?" in client.text("size", name="db", input_responses=answers)
    done = client.call("size", name="db", input_responses={**answers, "keep": answer})
    assert done["structuredContent"] == {"vcpus": 4, "kept": True}


def pay(ctx: Context, to: str, amount: int) -> str:
    paid = ctx.confirm("sure", f"Pay {amount} to {to}?", default=False)
    why = ctx.elicit("why", "What for?", str, default="nothing")
    return f"{'paid' if paid else 'not paid'}, for {why}"


def test_a_model_answers_no_question_that_follows_a_user_only_one():
    def reckless(ctx: Context) -> str:
        with suppress(MissingClientCapability):
            ctx.confirm("sure", "Pay?")
        return ctx.elicit("to", "To whom?", str)

    answers = {"sure": True, "to": "eve"}
    assert "To whom?" in through_model(reckless).error_text("reckless", input_responses=answers)


def test_a_form_with_an_action_is_asked_for_so_that_no_answer_looks_like_a_refusal():
    def decide(ctx: Context) -> str:
        class Decision(BaseModel):
            action: str

        return ctx.elicit("decision", "What now?", Decision).action

    client = through_model(decide)
    assert '"content"' in client.text("decide")
    answer = {"action": "accept", "content": {"action": "decline"}}
    assert client.text("decide", input_responses={"decision": answer}) == "decline"


def test_null_counts_as_no_answers_and_for_the_other_members_of_one():
    client = through_model(size)
    for none in (None, {"other": {}}):
        assert "How large" in client.text("size", name="db", input_responses=none)
    answered = {"size": {"action": "accept", "content": {"vcpus": 2}, "_meta": None}, "keep": {"value": True}}
    assert '"vcpus":2' in client.text("size", name="db", input_responses=answered)
    declined = {"size": {"action": "decline", "content": None}}
    assert client.error_text("size", name="db", input_responses=declined)


JSON = any_json(st.text(max_size=5), finite=True)


@given(st.dictionaries(st.sampled_from(["size", "keep", "other"]), JSON) | JSON)
def test_an_invented_answer_is_asked_again_or_an_error_that_the_model_can_read(answers):
    assert through_model(size).text("size", name="db", input_responses=answers)


@dataclass
class Page:
    """Where users go. Whatever has a reference in `visited` is done."""

    visited: set[str] = field(default_factory=set)
    references: list[str] = field(default_factory=list)

    def connect(self, ctx: Context, account: str) -> str:
        reference = ctx.reference("account")
        page = f"https://x.test/{reference}"
        link = page if ctx.principal is None else ctx.signed_link("link", page)
        self.references.append(reference)
        ctx.elicit_url("connect", f"Connect {account}", link, done=lambda: reference in self.visited)
        return ctx.step("read", lambda: f"{account} is connected")


def connecting(page, user="ada", **options):
    return serving(page.connect, user=user, **options)


def elicitation(client, **arguments):
    error = client.call_error("connect", **arguments)
    assert error["code"] == -32042
    [asked] = error["data"]["elicitations"]
    return asked


@pytest.mark.parametrize("choice", [(), ("default",), ("model",), ("app", "page", "model", "default")])
def test_a_url_is_an_error_until_the_user_has_been_there(choice):
    page = Page()
    client = connecting(page, channels=choice)
    asked = elicitation(client, account="bank")
    assert (asked["mode"], asked["message"]) == ("url", "Connect bank")
    assert elicitation(client, account="bank")["elicitationId"] == asked["elicitationId"]
    [reference] = {each for each in page.references if each in asked["url"]}
    page.visited.add(reference)
    assert client.text("connect", account="bank") == "bank is connected"


@pytest.mark.parametrize(("version", "mode"), [("2025-06-18", "url"), ("2025-11-25", "form")])
def test_a_client_that_does_not_know_urls_gets_an_error_of_the_tool(version, mode):
    capabilities = {"elicitation": {mode: {}}}
    client = connecting(Page(), channels=()).by(version=version, capabilities=capabilities).connected()
    assert "elicitation.url" in client.error_text("connect", account="bank")


def test_what_one_user_did_is_nothing_to_another_to_other_arguments_or_to_anonymous_callers():
    page = Page()
    ids = {
        elicitation(connecting(page, user), account=account)["elicitationId"]
        for user in ("ada", "bob")
        for account in ("bank", "shop")
    }
    assert len(ids) == 4
    anonymous = connecting(page, user=None)
    assert len({elicitation(anonymous, account="bank")["elicitationId"] for _ in range(3)}) == 3
    page.visited.update(page.references)
    assert elicitation(anonymous, account="bank")


def test_the_page_is_not_waited_for_before_the_client_has_shown_it():
    looks: list[float] = []

    def visit(ctx: Context) -> None:
        def done() -> bool:
            looks.append(ctx.remaining_ms)
            return False

        ctx.elicit_url("page", "Go", "https://x.test", done=done)

    assert serving(visit, user="ada").call_error("visit")["code"] == -32042
    assert len(looks) == 1


def test_several_urls_are_required_at_once_and_one_after_the_other():
    done: set[str] = set()

    def url(name: str) -> ElicitUrl:
        return ElicitUrl(name, f"Open {name}", f"https://x.test/{name}?token=1#x", lambda: name in done)

    def both(ctx: Context) -> str:
        ctx.ask(url("a"), url("b"))
        ctx.ask(url("c"))
        return "done"

    client = serving(both, user="ada")

    def asked() -> dict[str, str]:
        """Return the ids of the elicitations by the last letter of their URLs."""
        error = client.call_error("both")
        elicitations = error["data"]["elicitations"]
        assert all(f"{each['message']}: {each['url']}" in error["message"] for each in elicitations)
        return {each["url"].partition("?")[0][-1]: each["elicitationId"] for each in elicitations}

    first = asked()
    assert first.keys() == {"a", "b"}
    done.add("a")
    assert asked() == {"b": first["b"]}, "the same page has the same id"
    done.add("b")
    assert asked().keys() == {"c"}
    done.add("c")
    assert client.text("both") == "done"


def test_a_url_after_a_step_is_refused_and_the_step_runs_once():
    ran: list[str] = []

    def late(ctx: Context) -> str:
        ctx.step("made", lambda: ran.append("made"))
        ctx.elicit_url("open", "Open", "https://x.test", done=lambda: True)
        return "done"

    assert serving(late).error_text("late")
    assert ran == ["made"]


def test_the_example_of_the_guide_is_asked_through_the_model_and_answered_as_shown():
    shown: dict[str, Any] = {}
    [_, program, *_] = code_blocks("docs/guides/asking.md", "python")
    arguments = json.loads(code_blocks("docs/explanation/questions.md", "json")[-1])
    exec(program, shown)
    client = legacy(shown["server"])
    assert "How many CPUs has orders?" in client.text("new_database", name=arguments["name"])
    done = client.call("new_database", **arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
