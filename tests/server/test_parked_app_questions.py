"""Questions that a view shows while the call waits in the task table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, field_validator

from mcp_roundtrip import AsyncContext, Context, Server, ToolError
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import TaskTable
from support.app_client import AUTHORIZERS, LEGACY, QUESTIONS, AppClient, app_ports, status, text

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
def nothing_happened() -> None:
    EFFECTS.clear()
    IS_SIGNED_IN.clear()


@pytest.fixture(params=["2026-07-28", LEGACY, "2025-06-18"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["direct", "through the front door"])
def client(request: pytest.FixtureRequest, version: str) -> AppClient:
    return deployed(version, through_door=request.param)


def deployed(version: str = "2026-07-28", mode: AuthMode = AuthMode.JWT, **given: Any) -> AppClient:
    clock = given.pop("clock", None) or FakeClock()
    ports = app_ports(mode, tasks=TaskTable(clock), clock=clock)
    if "pause_ms" in given:
        ports = replace(ports, pause_ms=given.pop("pause_ms"))
    return AppClient(server, version, mode=mode, ports=ports, round_ms=25_000, **given)


@pytest.mark.parametrize("tool", ["order", "order_async"])
def test_the_same_call_returns_the_result_and_nothing_runs_twice(client: AppClient, tool: str) -> None:
    asked = client.call(tool, item="tea")
    assert status(asked) == "asking"
    assert f"call {tool} again with the same arguments" in text(asked)
    assert "https://mcp.test/mcp/questions?token=" in text(asked), "for a host that shows no view"
    again = client.answer(asked, count={"value": 3})
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    done = client.answer(again, sure={"value": True})
    assert (status(done), done["structuredContent"]) == ("complete", {"sent": 3})
    assert client.call(tool, item="tea")["structuredContent"] == {"sent": 3}
    assert EFFECTS == ["reserve", "charge", "send"]


def test_a_model_that_calls_again_too_early_is_asked_the_same_question(client: AppClient) -> None:
    asked = client.call("order", item="tea")
    early = client.call("order", item="tea")
    assert status(early) == "asking"
    assert early["_meta"][QUESTIONS]["requests"] == asked["_meta"][QUESTIONS]["requests"]
    client.answer(asked, count={"value": 3})
    assert EFFECTS == ["reserve", "charge"]


def test_the_reason_of_a_refusal_is_for_the_view_and_not_for_the_model(client: AppClient) -> None:
    refused = client.answer(client.call("register"), account={"name": "hunter2"})
    repeated = client.call("register")
    for asked in (refused, repeated):
        [request] = asked["_meta"][QUESTIONS]["requests"].values()
        assert "hunter2 is taken" in request["params"]["message"]
        assert "Which name?" in text(asked)
        assert "hunter2" not in text(asked)


def test_of_two_answers_the_first_one_counts(client: AppClient) -> None:
    asked = client.call("order", item="tea")
    first = client.answer(asked, count={"value": 3})
    later = client.answer(asked, count={"value": 4})
    assert (status(later), later["isError"]) == ("ended", True)
    assert "not stored" in text(later)
    again = client.answer(asked, count={"value": 3.0})
    assert again["_meta"][QUESTIONS]["requests"] == first["_meta"][QUESTIONS]["requests"]
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    assert client.answer(again, sure={"value": True})["structuredContent"] == {"sent": 3}
    assert EFFECTS == ["reserve", "charge", "send"]


def test_an_answer_of_a_megabyte_is_refused_and_the_question_stays_open(version: str) -> None:
    client = deployed(version)
    asked = client.call("order", item="tea")
    refused = client.answer(asked, count={"value": "9" * 1_048_576})
    assert refused["isError"] is True
    assert "The answer is too large: at most about 400000 bytes" in text(refused)
    again = client.answer(asked, count={"value": 3})
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]


def test_of_two_views_at_the_same_time_one_runs_the_call() -> None:
    # A pause of one view must not take time from the view that runs the call: they share the clock.
    client = deployed(pause_ms=lambda duration_ms: None)
    asked = client.call("order", item="tea")
    with ThreadPoolExecutor(4) as pool:
        answers = [{"count": {"value": number}} for number in range(1, 5)]
        results = list(pool.map(lambda answer: client.answer(asked, **answer), answers))
    statuses = [status(result) for result in results]
    assert sorted(each == "ended" for each in statuses) == [False, True, True, True]
    assert set(statuses) <= {"asking", "working", "ended"}
    assert EFFECTS == ["reserve", "charge"]


def test_an_answer_after_a_decline_changes_nothing(client: AppClient) -> None:
    asked = client.call("order", item="tea")
    declined = client.answer(asked, count={"action": "decline"})
    assert (status(declined), declined["isError"]) == ("complete", True)
    late = client.answer(asked, count={"value": 3})
    assert (late["isError"], EFFECTS) == (True, ["reserve"])


def test_an_old_view_shows_where_the_call_stands(client: AppClient) -> None:
    first = client.call("order", item="tea")
    second = client.answer(first, count={"value": 3})
    stands = client.answer(first)
    assert list(stands["_meta"][QUESTIONS]["requests"]) == ["sure"]
    client.answer(second, sure={"value": True})
    stands = client.answer(first)
    assert (status(stands), stands["structuredContent"]) == ("complete", {"sent": 3})
    assert EFFECTS == ["reserve", "charge", "send"]


def test_a_call_that_is_gone_cannot_be_answered(version: str) -> None:
    clock = FakeClock()
    client = deployed(version, clock=clock)
    asked = client.call("order", item="tea")
    for _ in range(7):
        clock.advance(550)
        stands = client.answer(asked)
        if status(stands) == "asking":
            asked = stands
    assert status(stands) == "ended"
    assert status(client.answer(asked, count={"value": 3})) == "ended"
    assert EFFECTS == ["reserve"]


@pytest.mark.parametrize("mode", [mode for mode in AUTHORIZERS if mode is not AuthMode.NONE])
@pytest.mark.parametrize("through_door", [False, True])
def test_another_user_cannot_answer(mode: AuthMode, version: str, through_door: bool) -> None:
    alice = deployed(version, mode, through_door=through_door)
    asked = alice.call("order", item="tea")
    assert status(alice.as_user("eve").answer(asked, count={"value": 3})) == "ended"
    assert EFFECTS == ["reserve"]


def test_the_state_of_a_view_is_no_state_of_a_call() -> None:
    client = deployed()
    state = client.call("order", item="tea")["_meta"][QUESTIONS]["state"]
    error = client.error("tools/call", name="order", arguments={"item": "tea"}, requestState=state)
    assert error["code"] == -32602


def test_a_view_waits_until_the_user_has_finished_at_a_url() -> None:
    client = deployed()
    asked = client.call("sign_in")
    waits = client.answer(asked, page={"action": "accept"})
    assert (status(waits), waits["_meta"][QUESTIONS]["retryAfterMs"]) == ("working", 2_000)
    assert text(waits) == "Waiting until you have finished at the link."
    IS_SIGNED_IN.append(True)
    assert text(client.answer(asked)) == "signed in"


def test_an_anonymous_call_without_a_session_holds_its_state_itself() -> None:
    client = deployed(mode=AuthMode.NONE)
    asked = client.call("order", item="tea")
    assert "again with the same arguments" not in text(asked)
    assert "would ask again from the start" in text(asked)
    assert status(client.answer(asked, count={"value": 3})) == "asking"
