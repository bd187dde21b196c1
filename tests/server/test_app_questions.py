"""Questions that a view shows, while the call waits in the task table or in a state that the view has."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from mcp_roundtrip import Context, Server, ToolError
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from mcp_roundtrip.protocol.http import MAX_JSON_VALUES
from support.client_requests import APPS, QUESTIONS, answer_arguments, app_status, code_in, text
from support.deployment import Deployment

server = Server("shop", scopes={"shop:all": ["shop:write"]})
effects = []


@server.tool
def order(ctx: Context, item: str) -> dict[str, Any]:
    ctx.step("reserve", effects.append, "reserve")
    count = ctx.elicit("count", f"How many {item}?", int)
    ctx.step("charge", effects.append, "charge")
    if not ctx.confirm("sure", f"Send {count} {item}?"):
        raise ToolError("Not sent.")
    ctx.step("send", effects.append, "send")
    return {"sent": count}


class Account(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def check(cls, name: str) -> str:
        if name.startswith("hunter"):
            raise ValueError(f"{name} is taken")
        return name


@server.tool
def register(ctx: Context) -> str:
    return ctx.elicit("account", "Which name?", Account).name


@server.tool(scopes=("shop:write",))
def guarded(ctx: Context) -> str:
    return str(ctx.elicit("count", "How many?", int))


@server.tool(requires=["sampling"])
def order_with_sampling(ctx: Context) -> bool:
    """Needs something that a view cannot do."""
    return ctx.elicit("sure", "Really?", bool)


@pytest.fixture(autouse=True)
def nothing_happened():
    effects.clear()


@pytest.fixture(params=[PROTOCOL_VERSION, LEGACY_VERSION, "2025-06-18"])
def version(request):
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["direct", "through the front door"])
def through_door(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["in the table", "in a state"])
def has_table(request):
    return request.param


def app(version=PROTOCOL_VERSION, **facets):
    return Deployment(server, **{"version": version, "capabilities": APPS, **facets}).connected()


@pytest.fixture
def parked(version, through_door):
    """A client whose calls wait in the table."""
    return app(version, through_door=through_door)


@pytest.fixture
def client(version, through_door, has_table):
    """A client whose calls wait in the table, or in a state that the view has."""
    return app(version, through_door=through_door, has_table=has_table)


def requests(result):
    return result["_meta"][QUESTIONS]["requests"]


def test_a_call_is_asked_and_answered_through_a_view_and_the_model_gets_no_state(client):
    asked = client.call("order", item="tea")
    questions = asked["_meta"][QUESTIONS]
    assert (app_status(asked), asked["isError"]) == ("asking", False)
    assert "How many tea?" in text(asked)
    assert questions["state"] not in json.dumps({**asked, "_meta": None})
    assert "structuredContent" not in asked
    assert questions["requests"]["count"]["params"]["requestedSchema"]["required"] == ["value"]
    assert (questions["tool"], questions["arguments"]) == ("order", {"item": "tea"})
    again = client.answer_in_app(asked, count=3)
    assert (app_status(again), list(requests(again))) == ("asking", ["sure"])
    done = client.answer_in_app(again, sure=True)
    assert (app_status(done), done["structuredContent"]) == ("complete", {"sent": 3})
    assert effects == ["reserve", "charge", "send"]


def test_of_two_answers_the_first_one_counts_and_an_old_view_and_the_same_call_show_where_it_stands(parked):
    asked = parked.call("order", item="tea")
    assert "call order again with the same arguments" in text(asked)
    assert "https://mcp.test/mcp/questions?token=" in text(asked), "for a host that shows no view"
    early = parked.call("order", item="tea")
    assert (app_status(early), requests(early)) == ("asking", requests(asked))
    first = parked.answer_in_app(asked, count=3)
    later = parked.answer_in_app(asked, count=4)
    assert (app_status(later), later["isError"]) == ("ended", True)
    assert "not stored" in text(later)
    for again in (parked.answer_in_app(asked, count=3.0), parked.answer_in_app(asked)):
        assert requests(again) == requests(first)
    parked.answer_in_app(again, sure=True)
    stands = parked.answer_in_app(asked)
    assert (app_status(stands), stands["structuredContent"]) == ("complete", {"sent": 3})
    assert parked.call("order", item="tea")["structuredContent"] == {"sent": 3}
    assert effects == ["reserve", "charge", "send"]


def test_an_invalid_answer_is_asked_again_with_the_reason_which_is_not_for_the_model(client, has_table):
    refused = client.answer_in_app(client.call("register"), account={"name": "hunter2"})
    for result in (refused, client.call("register")) if has_table else (refused,):
        [request] = requests(result).values()
        assert request["params"]["message"].startswith("Which name?\n\nThe previous answer was not accepted.")
        assert "hunter2 is taken" in request["params"]["message"]
        assert "Which name?" in text(result)
        assert "hunter2" not in text(result)
        assert "not accepted" not in text(result)
    [key] = requests(refused)
    assert text(client.answer_in_app(refused, **{key: {"name": "ada"}})) == "ada"


@pytest.mark.parametrize("mode", [mode for mode in AuthMode if mode is not AuthMode.NONE])
def test_another_user_cannot_answer(mode, version, through_door, has_table):
    alice = app(version, mode=mode, through_door=through_door, has_table=has_table)
    asked = alice.call("order", item="tea")
    refused = alice.by(user="eve").connected().answer_in_app(asked, count=3)
    assert (app_status(refused), refused["isError"]) == ("ended", True)
    assert effects == ["reserve"]
    assert app_status(alice.answer_in_app(asked, count=3)) == "asking"


def test_the_model_of_an_anonymous_caller_gets_the_code_and_continues_with_it():
    client = app(user=None)
    asked = client.call("order", item="tea")
    assert code_in(text(asked)) == code_in(asked["_meta"][QUESTIONS]["instruction"])
    again = client.answer_in_app(asked, count=3)
    stands = client.call("order", item="tea", continuation_code=code_in(text(asked)))
    assert app_status(again) == app_status(stands) == "asking"
    assert requests(stands) == requests(again)


def test_the_state_of_a_view_is_none_of_a_call_and_an_anonymous_one_is_a_bearer_token(version, has_table):
    """docs/explanation/security.md says so: a deployment for anonymous callers is for development."""
    client = app(version, has_table=has_table)
    state = client.call("order", item="tea")["_meta"][QUESTIONS]["state"]
    item = "tea" if has_table else "gold"
    refused = client.post_call("order", {"item": item}, requestState=state)
    assert version != PROTOCOL_VERSION or refused["error"]["code"] == -32602
    first = app(version, user=None, has_table=False)
    asked = first.call("order", item="tea")
    assert app_status(first.by().connected().answer_in_app(asked, count=3)) == "asking"


def test_a_call_can_be_answered_for_as_long_as_its_flow_lives(version, has_table):
    """A call without answers renews the state."""
    client = app(version, has_table=has_table)
    asked = client.call("order", item="tea")
    for _ in range(5):
        client.clock.advance(590)
        asked = client.answer_in_app(asked)
        assert app_status(asked) == "asking"
    client.clock.advance(650)
    assert app_status(client.answer_in_app(asked)) == "ended"
    assert app_status(client.answer_in_app(asked, count=3)) == "ended"
    assert effects == ["reserve"]


def test_a_client_without_views_has_no_answer_tool_and_an_unknown_tool_cannot_be_answered(client):
    arguments = answer_arguments(client.call("order", item="tea"))
    for tool in ("nothing", "answer_questions"):
        assert client.call_error("answer_questions", **{**arguments, "tool": tool})["code"] == -32602
    model = client.by(capabilities={}).connected()
    assert model.call_error("answer_questions", **arguments)["code"] == -32602


def test_the_scopes_of_the_tool_that_asked_are_needed(client):
    allowed = client.by(scopes=("shop:all",)).connected()
    asked = allowed.call("guarded")
    refused = client.send_call("answer_questions", answer_arguments(asked, count=3))
    assert refused.status == 403
    assert text(allowed.answer_in_app(asked, count=3)) == "3"


def test_the_name_in_the_header_is_that_of_the_answer_tool_and_too_many_answers_are_refused_unread():
    client = app()
    arguments = answer_arguments(client.call("order", item="tea"))
    body = client.body("tools/call", name="answer_questions", arguments=arguments)
    assert json.loads(client.send(body, mcp_name="order").body)["error"]["code"] == -32020
    arguments["answers"] = {f"key {number}": {} for number in range(MAX_JSON_VALUES)}
    assert client.call_error("answer_questions", **arguments)["code"] == -32600


def test_of_two_views_at_the_same_time_one_runs_the_call():
    client = app(stands_still=True)
    asked = client.call("order", item="tea")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: client.answer_in_app(asked, count=number), range(1, 5)))
    statuses = [app_status(result) for result in results]
    assert sorted(each == "ended" for each in statuses) == [False, True, True, True]
    assert set(statuses) <= {"asking", "working", "ended"}
    assert effects == ["reserve", "charge"]


def test_a_view_answers_for_a_tool_that_requires_what_only_its_client_can_do():
    client = app(capabilities={**APPS, "sampling": {}})
    asked = client.call("order_with_sampling")
    assert client.answer_in_app(asked, sure=True)["structuredContent"] is True


def test_a_view_of_a_client_of_2025_11_25_answers_also_where_such_clients_have_tasks():
    with_tasks = Server("orders", legacy_tasks="sep-2322")
    with_tasks.tool(order)
    client = app(LEGACY_VERSION).by(server=with_tasks).connected()
    asked = client.call("order", item="tea")
    assert app_status(client.answer_in_app(asked, count=3)) == "asking"
