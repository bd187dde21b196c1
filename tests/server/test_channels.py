"""How the questions of a call reach somebody, through a whole server."""

import json
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context
from mcp_roundtrip.protocol.capabilities import ELICITATION_FORM, ELICITATION_URL, declares
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.server.options import Fallback
from mcp_roundtrip_testing import Player
from support.client_requests import accepted, text
from support.deployment import Deployment, legacy
from support.servers import server_of


def order(ctx: Context, item: str) -> dict[str, Any]:
    amount = ctx.elicit("amount", f"How many {item}?", int)
    paid = ctx.elicit("sure", f"Pay for {amount}?", bool, default=False)
    return {"amount": amount, "paid": paid}


def server(**options):
    return server_of(order, **options)


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


def test_a_lenient_tool_takes_the_answers_of_a_model_and_drops_unknown_arguments():
    lenient = Deployment(server(channels=("model", "default"), lenient_arguments=True), capabilities={})
    sent = {"item": "apples", "colour": "red", "input_responses": {"amount": 3}}
    assert lenient.post_call("order", sent)["result"]["structuredContent"]["amount"] == 3


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
