"""How the questions of a call reach somebody, through a whole server."""

import json
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.capabilities import ELICITATION_FORM, ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.server.options import Fallback
from mcp_roundtrip.server.plan import Plan, presenter_of_repeated
from mcp_roundtrip_testing import Player
from support.client_requests import APPS, accepted, answer_arguments, text
from support.deployment import Deployment, legacy
from support.servers import server_of


def order(ctx: Context, item: str) -> dict[str, Any]:
    amount = ctx.elicit("amount", f"How many {item}?", int)
    paid = ctx.elicit("sure", f"Pay for {amount}?", bool, default=False)
    return {"amount": amount, "paid": paid}


def server(**options):
    return server_of(order, **options)


@pytest.mark.parametrize("answers", [{"amount": 3, "sure": True}, {"amount": 3, "sure": {"value": True}}])
def test_a_model_cannot_confirm_for_the_user(answers):
    player = Player(server(channels=("model",)), {})
    refused = player.call("order", {"item": "apples", "input_responses": answers})
    assert refused.error["code"] == -32021
    assert refused.error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    client = legacy(server(channels=("model",)))
    assert "Only the user may answer it" in client.error_text("order", item="apples", input_responses=answers)


def test_answers_that_a_model_makes_up_in_advance_count_only_for_its_own_questions():
    def summarize(ctx: Context) -> str:
        summary = ctx.sample("summary", "Summarize.", max_tokens=10).text
        return summary + ctx.elicit("title", "Which title?", str)

    player = Player(server_of(summarize, channels=("model",)), {"sampling": {}})
    made_up = {"summary": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}}
    asked = player.call("summarize", {"input_responses": {**made_up, "title": "!"}})
    assert asked.asked.keys() == {"summary"}
    sampled = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    assert asked.respond({"summary": sampled}).text == "short!"


def test_an_answer_of_a_waiting_call_that_no_item_can_hold_is_too_large_for_the_model_too():
    def name(ctx: Context) -> str:
        ctx.step("begin", lambda: None)
        return ctx.elicit("name", "Who?", str)

    client = legacy(server_of(name, channels=("model",)), has_table=True, user="alice")
    assert "Who?" in client.text("name")
    assert "too large" in client.error_text("name", input_responses={"name": "x" * 500_000})
    assert client.outcome == "answers_too_large"
    assert client.text("name", input_responses={"name": "Ada"}) == "Ada"


def test_a_question_after_a_step_is_not_asked_through_the_model():
    def late(ctx: Context) -> str:
        ctx.step("begin", lambda: None)
        return ctx.elicit("name", "Who?", str)

    player = Player(server_of(late, channels=("model",)), {}, ports={"tasks": None})
    assert "has started its work" in player.call("late").text
    assert any(event == "asked_after_steps" for event, _ in player.observer.events)


def test_a_state_is_bound_to_the_arguments_without_the_models_answers():
    def summarize(ctx: Context, word: str) -> str:
        ctx.sample("summary", "Summarize.", max_tokens=10)
        return word + ctx.elicit("title", "Which title?", str)

    player = Player(server_of(summarize, channels=("model",)), {"sampling": {}})
    state = player.call("summarize", {"word": "a"}).state
    sampled = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    answered = {"word": "a", "input_responses": {"title": "!"}}
    assert player.send("summarize", answered, {"summary": sampled}, state).text == "a!"
    moved = {"word": "b", "input_responses": {"title": "!"}}
    assert player.send("summarize", moved, {"summary": sampled}, state).error["code"] == -32602


UI = {"extensions": {"io.modelcontextprotocol/ui": {}}}

capabilities = st.builds(
    lambda elicitation, ui: {**({} if elicitation is None else {"elicitation": elicitation}), **ui},
    st.sampled_from([None, {}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}}]),
    st.sampled_from([{}, UI]),
)
ladders = st.sampled_from([each for size in range(5) for each in permutations(get_args(Fallback), size)])
users = st.sampled_from(["ada", None])
answers = st.dictionaries(
    st.sampled_from(["amount", "sure", "other"]),
    st.sampled_from([3, True, {"value": 3}, {"value": True}, accepted(True)]),
)


@given(capabilities, ladders, users)
def test_a_form_goes_to_the_first_channel_that_can_carry_it(declared, ladder, user):
    shows_forms, shows_urls = (declares(declared, each) for each in (ELICITATION_FORM, ELICITATION_URL))
    usable = {
        "app": "extensions" in declared,
        "page": not (shows_forms and shows_urls),
        "model": not shows_forms,
        "default": False,  # the first question has none
    }
    outcomes = {
        "app": "asked_in_app",
        "page": "asked_on_page",
        "model": "asked_through_model",
        "client": "input_required",
    }
    chosen = ["client"] if shows_forms else [each for each in ladder if usable[each]]
    client = Deployment(server(channels=ladder), user=user, capabilities=declared)
    response = client.post_call("order", {"item": "apples"})
    if chosen:
        assert client.outcome == outcomes[chosen[0]]
    else:
        assert response["error"]["code"] == -32021


@given(capabilities, ladders, answers, users)
def test_nothing_is_paid_unless_a_user_was_shown_the_question(declared, ladder, given_answers, user):
    made = server(channels=ladder)
    client = Deployment(made, user=user, capabilities=declared)
    for params in ({}, {"inputResponses": {key: accepted(value) for key, value in given_answers.items()}}):
        for passed_on in ({}, {"input_responses": given_answers}):
            response = client.post_call("order", {"item": "apples", **passed_on}, **params)
            assert '"paid":true' not in json.dumps(response).replace(" ", "").replace("\\", "")
    for passed_on in ({}, {"input_responses": given_answers}):
        result = legacy(made).call("order", item="apples", **passed_on)
        assert '"paid":true' not in text(result).replace(" ", "")


RAN = []


def requiring(channels):
    server = Server("x")
    server.tool(name="never_asks", requires=["elicitation.form"])(lambda: "done")

    @server.tool(requires=["elicitation.form"], channels=channels)
    def size(ctx: Context) -> str:
        RAN.append("size")
        return f"{ctx.elicit('vcpus', 'How many CPUs?', int)} CPUs"

    @server.tool(requires=["sampling"], channels=channels)
    def summarize(ctx: Context) -> str:
        return ctx.sample("summary", "Summarize.", max_tokens=10).text

    return server


def test_a_channel_that_reaches_the_user_is_as_good_as_the_clients_own_elicitation():
    made = requiring(("model",))
    for client in ("chatgpt", "codex"):
        assert Player(made, client=client).call("size", vcpus=4).text == "4 CPUs"
    error = Player(made, client="chatgpt").call("never_asks").error
    assert error["code"] == -32021, "it has no context, so it has no channels"
    error = Player(made, client="chatgpt").call("summarize").error
    assert error["data"]["requiredCapabilities"] == {"sampling": {}}


@pytest.mark.parametrize("channels", [(), ("default",)])
def test_without_such_a_channel_the_call_is_refused_before_the_tool_runs(channels):
    RAN.clear()
    error = Player(requiring(channels), client="chatgpt").call("size").error
    assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, {"elicitation": {"form": {}}})
    assert "elicitation.form" in legacy(requiring(channels)).error_text("size")
    assert RAN == []


@pytest.mark.parametrize(("fallback", "has_table"), [("page", True), ("app", True), ("app", False)])
@pytest.mark.parametrize("declared", [{"sampling": {}}, {}], ids=["declared", "undeclared"])
def test_a_waiting_call_that_cannot_ask_its_client_names_only_missing_capabilities(
    declared, fallback, has_table
):
    def advise(ctx: Context) -> str:
        ctx.elicit("size", "How large?", int)
        return ctx.sample("advice", "Advice?", max_tokens=9).text

    capabilities = {**declared, **(APPS if fallback == "app" else {})}
    made = server_of(advise, channels=(fallback,))
    client = Deployment(made, capabilities=capabilities, has_table=has_table)
    asked = client.call("advise")
    if fallback == "page":
        client.answer(text(asked), size=3)
        ended = client.post_call("advise")
    else:
        ended = client.post_call("answer_questions", answer_arguments(asked, size=3))
    if declared:
        assert ended["result"]["isError"] is True
    else:
        assert ended["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


ALL = ("app", "page", "model", "default")


@pytest.mark.parametrize(
    ("fallbacks", "is_for_model", "shows_requests", "presenter"),
    [
        (ALL, True, True, "model"),
        (("page",), True, False, "page"),  # another client asked its model
        (ALL, False, True, "client"),
        (ALL, False, False, "app"),
        (("page", "app"), False, False, "page"),
        (("model", "default"), False, False, "page"),  # another client asked on the page
    ],
)
def test_open_questions_are_asked_in_the_best_way_of_the_client_that_makes_the_call_again(
    fallbacks, is_for_model, shows_requests, presenter
):
    plan = Plan(fallbacks, parks=True, state="follows")
    found = presenter_of_repeated(plan, is_for_model=is_for_model, shows_requests=shows_requests)
    assert found == presenter


@pytest.mark.parametrize("name", ["copilot-cli", "codex-mcp-client"])
def test_only_clients_that_fail_without_it_get_the_elicitation_id_that_the_revision_removed(name):
    def approve(ctx: Context) -> str:
        ctx.elicit_url("page", "Look.", "https://x.test", done=lambda: True)
        return "done"

    def asked_by(client):
        meta = {META_CLIENT_INFO: {"name": client, "version": "1.0"}}
        return Player(server_of(approve), meta=meta).call("approve").asked["page"]

    asked = asked_by("another")
    assert asked_by(name) == {**asked, "params": {**asked["params"], "elicitationId": "page"}}
    assert "elicitationId" not in asked["params"]
