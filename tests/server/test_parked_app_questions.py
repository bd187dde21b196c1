"""Questions that a view shows while the call waits in the task table."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from mcp_roundtrip import AsyncContext, Context, Server, ToolError
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from support.client_requests import APPS, QUESTIONS, app_status, code_in, text
from support.deployment import Deployment

server = Server("parked")

EFFECTS: list[str] = []


def effect(name: str) -> str:
    EFFECTS.append(name)
    return name


@server.tool
def order(ctx: Context, item: str) -> dict[str, Any]:
    """Order something."""
    ctx.step("reserve", effect, "reserve")
    count = ctx.elicit("count", f"How many {item}?", int)
    ctx.step("charge", effect, "charge")
    if not ctx.confirm("sure", f"Send {count} {item}?"):
        raise ToolError("Not sent.")
    ctx.step("send", effect, "send")
    return {"sent": count}


@server.tool
async def order_async(ctx: AsyncContext, item: str) -> dict[str, Any]:
    """Order something."""
    await ctx.step("reserve", effect, "reserve")
    count = await ctx.elicit("count", f"How many {item}?", int)
    await ctx.step("charge", effect, "charge")
    if not await ctx.confirm("sure", f"Send {count} {item}?"):
        raise ToolError("Not sent.")
    await ctx.step("send", effect, "send")
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


IS_SIGNED_IN: list[bool] = []


@server.tool
def sign_in(ctx: Context) -> str:
    ctx.elicit_url("page", "Sign in", "https://x.test/page", done=lambda: bool(IS_SIGNED_IN))
    return effect("signed in")


@pytest.fixture(autouse=True)
def nothing_happened():
    EFFECTS.clear()
    IS_SIGNED_IN.clear()


@pytest.fixture(params=[PROTOCOL_VERSION, LEGACY_VERSION, "2025-06-18"])
def version(request):
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["direct", "through the front door"])
def client(request, version):
    return app(version, through_door=request.param)


def app(version=PROTOCOL_VERSION, **facets):
    """Return a client that shows views."""
    return Deployment(server, version=version, capabilities=APPS, **facets).connected()


@pytest.mark.parametrize("tool", ["order", "order_async"])
def test_the_same_call_returns_the_result_and_nothing_runs_twice(client, tool):
    asked = client.call(tool, item="tea")
    assert app_status(asked) == "asking"
    assert f"call {tool} again with the same arguments" in text(asked)
    assert "https://mcp.test/mcp/questions?token=" in text(asked), "for a host that shows no view"
    again = client.answer_in_app(asked, count=3)
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    done = client.answer_in_app(again, sure=True)
    assert (app_status(done), done["structuredContent"]) == ("complete", {"sent": 3})
    assert client.call(tool, item="tea")["structuredContent"] == {"sent": 3}
    assert EFFECTS == ["reserve", "charge", "send"]


def test_a_model_that_calls_again_too_early_is_asked_the_same_question(client):
    asked = client.call("order", item="tea")
    early = client.call("order", item="tea")
    assert app_status(early) == "asking"
    assert early["_meta"][QUESTIONS]["requests"] == asked["_meta"][QUESTIONS]["requests"]
    client.answer_in_app(asked, count=3)
    assert EFFECTS == ["reserve", "charge"]


def test_the_reason_of_a_refusal_is_for_the_view_and_not_for_the_model(client):
    refused = client.answer_in_app(client.call("register"), account={"name": "hunter2"})
    repeated = client.call("register")
    for asked in (refused, repeated):
        [request] = asked["_meta"][QUESTIONS]["requests"].values()
        assert "hunter2 is taken" in request["params"]["message"]
        assert "Which name?" in text(asked)
        assert "hunter2" not in text(asked)


def test_of_two_answers_the_first_one_counts(client):
    asked = client.call("order", item="tea")
    first = client.answer_in_app(asked, count=3)
    later = client.answer_in_app(asked, count=4)
    assert (app_status(later), later["isError"]) == ("ended", True)
    assert "not stored" in text(later)
    again = client.answer_in_app(asked, count=3.0)
    assert again["_meta"][QUESTIONS]["requests"] == first["_meta"][QUESTIONS]["requests"]
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    assert client.answer_in_app(again, sure=True)["structuredContent"] == {"sent": 3}
    assert EFFECTS == ["reserve", "charge", "send"]


def test_an_answer_of_a_megabyte_is_refused_and_the_question_stays_open(version):
    client = app(version)
    asked = client.call("order", item="tea")
    refused = client.answer_in_app(asked, count="9" * 1_048_576)
    assert refused["isError"] is True
    assert "The answer is too large: at most about 400000 bytes" in text(refused)
    again = client.answer_in_app(asked, count=3)
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]


def test_of_two_views_at_the_same_time_one_runs_the_call():
    client = app(stands_still=True)
    asked = client.call("order", item="tea")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: client.answer_in_app(asked, count=number), range(1, 5)))
    statuses = [app_status(result) for result in results]
    assert sorted(each == "ended" for each in statuses) == [False, True, True, True]
    assert set(statuses) <= {"asking", "working", "ended"}
    assert EFFECTS == ["reserve", "charge"]


def test_an_answer_after_a_decline_changes_nothing(client):
    asked = client.call("order", item="tea")
    declined = client.answer_in_app(asked, count={"action": "decline"})
    assert (app_status(declined), declined["isError"]) == ("complete", True)
    late = client.answer_in_app(asked, count=3)
    assert (late["isError"], EFFECTS) == (True, ["reserve"])


def test_an_old_view_shows_where_the_call_stands(client):
    first = client.call("order", item="tea")
    second = client.answer_in_app(first, count=3)
    stands = client.answer_in_app(first)
    assert list(stands["_meta"][QUESTIONS]["requests"]) == ["sure"]
    client.answer_in_app(second, sure=True)
    stands = client.answer_in_app(first)
    assert (app_status(stands), stands["structuredContent"]) == ("complete", {"sent": 3})
    assert EFFECTS == ["reserve", "charge", "send"]


def test_a_call_that_is_gone_cannot_be_answered(version):
    client = app(version)
    asked = client.call("order", item="tea")
    for _ in range(7):
        client.clock.advance(550)
        stands = client.answer_in_app(asked)
        if app_status(stands) == "asking":
            asked = stands
    assert app_status(stands) == "ended"
    assert app_status(client.answer_in_app(asked, count=3)) == "ended"
    assert EFFECTS == ["reserve"]


@pytest.mark.parametrize("mode", [mode for mode in AuthMode if mode is not AuthMode.NONE])
@pytest.mark.parametrize("through_door", [False, True])
def test_another_user_cannot_answer(mode, version, through_door):
    alice = app(version, mode=mode, through_door=through_door)
    asked = alice.call("order", item="tea")
    assert app_status(alice.by(user="eve").connected().answer_in_app(asked, count=3)) == "ended"
    assert EFFECTS == ["reserve"]


def test_the_state_of_a_view_is_no_state_of_a_call():
    client = app()
    state = client.call("order", item="tea")["_meta"][QUESTIONS]["state"]
    assert client.post_call("order", {"item": "tea"}, requestState=state)["error"]["code"] == -32602


def test_a_view_waits_until_the_user_has_finished_at_a_url():
    client = app()
    asked = client.call("sign_in")
    waits = client.answer_in_app(asked, page={"action": "accept"})
    assert (app_status(waits), waits["_meta"][QUESTIONS]["retryAfterMs"]) == ("working", 2_000)
    assert text(waits) == "Waiting until you have finished at the link."
    IS_SIGNED_IN.append(True)
    assert text(client.answer_in_app(asked)) == "signed in"


def test_the_model_of_an_anonymous_caller_gets_the_code_and_continues_with_it():
    client = app(user=None)
    asked = client.call("order", item="tea")
    assert code_in(text(asked)) == code_in(asked["_meta"][QUESTIONS]["instruction"])
    again = client.answer_in_app(asked, count=3)
    assert app_status(again) == "asking"
    stands = client.call("order", item="tea", continuation_code=code_in(text(asked)))
    assert app_status(stands) == "asking"
    assert stands["_meta"][QUESTIONS]["requests"] == again["_meta"][QUESTIONS]["requests"]


@server.tool(requires=["sampling"])
def order_with_sampling(ctx: Context) -> bool:
    """Needs something that a view cannot do."""
    return ctx.elicit("sure", "Really?", bool)


def test_a_view_answers_for_a_tool_that_requires_what_only_its_client_can_do():
    client = Deployment(server, capabilities={**APPS, "sampling": {}})
    asked = client.call("order_with_sampling")
    assert client.answer_in_app(asked, sure=True)["structuredContent"] is True


def test_a_view_of_a_client_of_2025_11_25_answers_also_where_such_clients_have_tasks():
    with_tasks = Server("orders", legacy_tasks="sep-2322")
    with_tasks.tool(order)
    client = Deployment(with_tasks, capabilities=APPS, version=LEGACY_VERSION).connected()
    asked = client.call("order", item="tea")
    assert app_status(client.answer_in_app(asked, count=3)) == "asking"
