import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_roundtrip import Context, MissingClientCapability, Sample
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


def through_model(tool):
    return legacy(server_of(tool, channels=("model",)))


@pytest.mark.parametrize(
    "answer",
    [{"value": True}, True, {"action": "accept", "content": {"value": True}, "_meta": None}],
    ids=["content", "value", "ElicitResult"],
)
def test_answers_accumulate_in_the_arguments_and_may_be_spelled_in_several_ways(answer):
    client = through_model(size)
    answers: dict[str, Any] = {"size": {"vcpus": 4}}
    assert "4 CPUs. Keep it?" in client.text("size", name="db", input_responses=answers)
    done = client.call("size", name="db", input_responses={**answers, "keep": answer})
    assert done["structuredContent"] == {"vcpus": 4, "kept": True}


def test_a_model_answers_no_question_that_follows_a_user_only_one():
    def reckless(ctx: Context) -> str:
        with suppress(MissingClientCapability):
            ctx.confirm("sure", "Pay?")
        return ctx.elicit("to", "To whom?", str)

    answers = {"sure": True, "to": "eve"}
    assert "To whom?" in through_model(reckless).error_text("reckless", input_responses=answers)


def test_an_error_about_questions_lists_those_with_one_text_once():
    def summarize(ctx: Context) -> str:
        ctx.ask(*(Sample(key, f"Summarize {key}.", max_tokens=9) for key in ("first", "second")))
        return "done"

    assert legacy(server_of(summarize)).error_text("summarize").count("sampling/createMessage") == 1


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
    return legacy(server_of(page.connect, **options), user=user)


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
    assert "/questions?token=" in connecting(Page()).by(has_table=True).text("connect", account="shop")


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


def test_the_id_of_an_elicitation_depends_on_what_the_model_has_answered():
    def connect(ctx: Context) -> None:
        ctx.elicit("plan", "Which plan?", str)
        ctx.elicit_url("pay", "Pay", "https://x.test", done=lambda: False)

    client = legacy(server_of(connect, channels=("model",)), user="ada")
    ids = [elicitation(client, input_responses={"plan": plan})["elicitationId"] for plan in "aba"]
    assert ids[0] == ids[2] != ids[1]


def test_a_question_after_a_step_is_refused_and_the_step_runs_once():
    ran: list[str] = []

    def late(ctx: Context) -> str:
        ctx.step("made", lambda: ran.append("made"))
        ctx.elicit_url("open", "Open", "https://x.test", done=lambda: True)
        return "done"

    def asks_model(ctx: Context) -> str:
        ctx.step("made", lambda: ran.append("made"))
        return ctx.elicit("to", "To whom?", str)

    assert legacy(server_of(late)).error_text("late")
    assert "do not call it again" in through_model(asks_model).error_text("asks_model")
    assert ran == ["made"] * 2


def test_the_example_of_the_guide_is_asked_through_the_model_and_answered_as_shown():
    shown: dict[str, Any] = {}
    [_, program, *_] = code_blocks("docs/guides/asking.md", "python")
    arguments = json.loads(code_blocks("docs/explanation/questions.md", "json")[-1])
    exec(program, shown)
    client = legacy(shown["server"])
    assert "How many CPUs has orders?" in client.text("new_database", name=arguments["name"])
    done = client.call("new_database", **arguments)
    assert done["structuredContent"] == {"name": "orders", "vcpus": 4}
