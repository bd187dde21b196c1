"""Questions that a view shows, while the call waits in the task table or in a state that the view has."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_roundtrip import Context, Server, ToolError
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from support.audit_lines import AuditLines
from support.client_requests import APPS, QUESTIONS, answer_arguments, app_status, text
from support.deployment import Deployment
from support.task_tools import meanwhile, ran, run_step

server = Server("shop", scopes={"shop:all": ["shop:write"]})


@server.tool
def order(ctx: Context, item: str) -> dict[str, Any]:
    ctx.step("reserve", run_step, "reserve")
    count = ctx.elicit("count", f"How many {item}?", int)
    ctx.step("charge", run_step, "charge")
    if not ctx.confirm("sure", f"Send {count} {item}?"):
        raise ToolError("Not sent.")
    ctx.step("send", run_step, "send")
    return {"sent": count}


@server.tool(scopes=("shop:write",))
def guarded(ctx: Context) -> str:
    return str(ctx.elicit("count", "How many?", int))


@server.tool
def order_slowly(ctx: Context) -> str:
    ctx.elicit("count", "How many?", int)
    ctx.step("reserve", run_step, "reserve")
    return ctx.step("charge", run_step, "charge")


@pytest.fixture(params=[True, False], ids=["in the table", "in a state"])
def has_table(request):
    return request.param


def app(version=PROTOCOL_VERSION, **facets):
    return Deployment(server, **{"version": version, "capabilities": APPS, **facets}).connected()


@pytest.fixture
def client(version, through_door, has_table):
    """A client whose calls wait in the table, or in a state that the view has."""
    return app(version, through_door=through_door, has_table=has_table, audit=AuditLines())


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
    assert (app_status(again), list(again["_meta"][QUESTIONS]["requests"])) == ("asking", ["sure"])
    done = client.answer_in_app(again, sure=True)
    assert (app_status(done), done["structuredContent"]) == ("complete", {"sent": 3})
    assert ran == ["reserve", "charge", "send"]
    answers = [each for record in client.audit.records() for each in record.get("answered", ())]
    assert [(each["key"], each["via"]) for each in answers] == [("count", "app"), ("sure", "app")]


def test_the_state_of_a_view_that_names_a_call_is_refused_from_a_client():
    client = app()
    state = client.call("order", item="tea")["_meta"][QUESTIONS]["state"]
    assert client.post_call("order", {"item": "tea"}, requestState=state)["error"]["code"] == -32602


def test_an_error_without_a_state_names_the_steps_that_run_again(client, has_table):
    failures = iter([KeyServiceError("DisabledException"), SettingsError("MCP_STATE_KEY_ARN", "is wrong")])

    def fail():
        raise next(failures)

    without_keys = client.by(replaced_ports={"state_codec": fail})
    for _ in range(2):
        error = without_keys.call_error("order", item="tea")
        assert error["code"] == -32603
        assert ("is repeated: reserve." in error["message"]) is not has_table


def test_a_call_that_is_out_of_time_is_continued_by_its_view(client):
    asked = client.call("order_slowly")
    meanwhile.append(lambda: client.clock.advance(client.round_ms / 1_000))
    later = client.answer_in_app(asked, count=3)
    assert (app_status(later), ran) == ("working", ["reserve"])
    questions = {**asked["_meta"][QUESTIONS], **later["_meta"][QUESTIONS]}
    done = client.answer_in_app({"_meta": {QUESTIONS: questions}})
    assert (app_status(done), text(done)) == ("complete", "charge")
    assert ran == ["reserve", "charge"]


def test_the_scopes_of_the_tool_that_asked_are_needed(client):
    allowed = client.by(scopes=("shop:all",)).connected()
    asked = allowed.call("guarded")
    refused = client.send_call("answer_questions", answer_arguments(asked, count=3))
    assert refused.status == 403
    assert text(allowed.answer_in_app(asked, count=3)) == "3"


def test_of_two_views_at_the_same_time_one_runs_the_call():
    client = app(stands_still=True)
    asked = client.call("order", item="tea")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: client.answer_in_app(asked, count=number), range(1, 5)))
    statuses = [app_status(result) for result in results]
    assert sorted(each == "ended" for each in statuses) == [False, True, True, True]
    assert set(statuses) <= {"asking", "working", "ended"}
    assert ran == ["reserve", "charge"]
