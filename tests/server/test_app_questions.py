"""Questions that a view shows: the results, the answer tool, and attempts to misuse them."""

import asyncio
import json
from typing import Any
from unittest.mock import Mock

import pytest

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Server, ToolError
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION, UI_MIME_TYPE
from mcp_roundtrip.protocol.http import MAX_JSON_VALUES
from support.client_requests import APPS, QUESTIONS, accepted, answer_arguments, app_status, text
from support.deployment import Deployment

DOCUMENT = "<!doctype html><title>Forecast</title>"

server = Server("shop", scopes={"shop:all": ["shop:write"]}, channels=("app", "default"))

CHARGED: list[str] = []


@server.tool
def order(ctx: Context, item: str) -> dict[str, Any]:
    """Order something."""
    count = ctx.elicit("count", f"How many {item}?", int)
    if not ctx.confirm("sure", f"Order {count} {item}?"):
        raise ToolError("Not ordered.")
    ctx.step("charge", CHARGED.append, item)
    return {"ordered": count}


@server.tool
async def order_async(ctx: AsyncContext, item: str) -> dict[str, Any]:
    """Order something."""
    count = await ctx.elicit("count", f"How many {item}?", int)
    if not await ctx.confirm("sure", f"Order {count} {item}?"):
        raise ToolError("Not ordered.")
    await ctx.step("charge", CHARGED.append, item)
    return {"ordered": count}


VISITED: set[str] = set()


@server.tool
def sign_in(ctx: Context) -> str:
    ctx.elicit_url(
        "page", "Sign in", "https://x.test/page", done=lambda: "page" in VISITED, poll_interval_ms=None
    )
    return "signed in"


@server.tool(scopes=("shop:write",))
def guarded(ctx: Context) -> str:
    return str(ctx.elicit("count", "How many?", int))


@server.tool(ui=DOCUMENT)
def forecast() -> dict[str, int]:
    return {"celsius": 3}


@server.tool
def plain() -> str:
    return "plain"


@pytest.fixture(autouse=True)
def nothing_charged():
    CHARGED.clear()
    VISITED.clear()


@pytest.fixture(params=[PROTOCOL_VERSION, LEGACY_VERSION, "2025-06-18"])
def version(request):
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["direct", "through the front door"])
def client(request, version):
    return app(version, through_door=request.param)


def app(version=PROTOCOL_VERSION, /, server=server, **facets):
    """Return a client that shows views. Its calls hold their state themselves: there is no table."""
    facets = {"capabilities": APPS, "has_table": False, **facets}
    return Deployment(server, version=version, **facets).connected()


both_kinds = pytest.mark.parametrize("tool", ["order", "order_async"])


@both_kinds
def test_a_call_is_asked_and_answered_through_a_view(client, tool):
    asked = client.call(tool, item="tea")
    assert (app_status(asked), asked["isError"]) == ("asking", False)
    again = client.answer_in_app(asked, count=3)
    assert app_status(again) == "asking"
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    done = client.answer_in_app(again, sure=True)
    assert (app_status(done), done["structuredContent"]) == ("complete", {"ordered": 3})
    assert CHARGED == ["tea"]


def test_the_text_of_the_result_is_for_the_model_and_holds_no_state(client):
    asked = client.call("order", item="tea")
    questions = asked["_meta"][QUESTIONS]
    assert "How many tea?" in text(asked)
    assert questions["state"] not in json.dumps({**asked, "_meta": None})
    assert "structuredContent" not in asked
    request = questions["requests"]["count"]
    assert request["params"]["requestedSchema"]["required"] == ["value"]
    assert (questions["tool"], questions["arguments"]) == ("order", {"item": "tea"})


def test_an_invalid_answer_is_asked_again_with_the_reason(client):
    again = client.answer_in_app(client.call("order", item="tea"), count="many")
    message = again["_meta"][QUESTIONS]["requests"]["count"]["params"]["message"]
    assert message.startswith("How many tea?\n\nThe previous answer was not accepted.")
    assert "How many tea?" in text(again)
    assert "not accepted" not in text(again), "the reason may quote the answer"
    assert app_status(client.answer_in_app(again, count=1)) == "asking"


def test_a_declined_question_ends_the_call_and_an_old_state_asks_again(client):
    asked = client.call("order", item="tea")
    declined = client.answer_in_app(asked, count={"action": "decline"})
    assert (app_status(declined), declined["isError"]) == ("complete", True)
    assert app_status(client.answer_in_app(asked)) == "asking"
    assert CHARGED == []


def test_without_answers_the_result_says_where_the_call_stands(client):
    asked = client.call("order", item="tea")
    stands = client.answer_in_app(asked)
    assert app_status(stands) == "asking"
    assert stands["_meta"][QUESTIONS]["requests"] == asked["_meta"][QUESTIONS]["requests"]


def test_a_url_is_shown_until_the_user_has_finished_there(client):
    asked = client.call("sign_in")
    assert asked["_meta"][QUESTIONS]["requests"]["page"]["params"]["url"] == "https://x.test/page"
    again = client.answer_in_app(asked, page={"action": "accept"})
    assert app_status(again) == "asking"
    VISITED.add("page")
    assert text(client.answer_in_app(again, page={"action": "accept"})) == "signed in"


def test_a_client_that_can_be_asked_itself_is(version):
    client = app(capabilities={**APPS, "elicitation": {}})
    assert client.call("order", item="tea")["resultType"] == "input_required"


def test_forms_name_their_view_for_a_client_that_can_show_them_there():
    ui = {"extensions": {name: {**each, "elicitation": {}} for name, each in APPS["extensions"].items()}}
    client = app(capabilities={**ui, "elicitation": {}})
    asked = client.call("order", item="tea")
    assert asked["inputRequests"]["count"]["params"]["_meta"] == {
        "ui": {"resourceUri": "ui://mcp-roundtrip/questions"}
    }
    answered = {"requestState": asked["requestState"], "inputResponses": {"count": accepted(2)}}
    again = client.post_call("order", {"item": "tea"}, **answered)["result"]
    assert list(again["inputRequests"]) == ["sure"]


@pytest.mark.parametrize("missing", ["tool", "arguments", "state", "answers"])
def test_an_answer_that_lacks_an_argument_changes_nothing(client, missing):
    arguments = answer_arguments(client.call("order", item="tea"), count=3)
    del arguments[missing]
    response = client.post_call("answer_questions", arguments)
    assert "error" in response or response["result"]["isError"]
    assert CHARGED == []


@pytest.mark.parametrize("mode", [mode for mode in AuthMode if mode is not AuthMode.NONE])
@pytest.mark.parametrize("through_door", [False, True])
def test_another_user_cannot_answer(mode, through_door, version):
    alice = app(version, mode=mode, through_door=through_door)
    asked = alice.call("order", item="tea")
    refused = alice.by(user="eve").connected().answer_in_app(asked, count=3)
    assert (app_status(refused), refused["isError"]) == ("ended", True)
    assert app_status(alice.answer_in_app(asked, count=3)) == "asking"


def test_an_anonymous_state_is_a_bearer_token(version):
    """docs/explanation/security.md says so: such a deployment is for development."""
    first = app(version, user=None)
    asked = first.call("order", item="tea")
    assert app_status(first.by().connected().answer_in_app(asked, count=3)) == "asking"


@pytest.mark.parametrize(
    "change",
    [
        {"tool": "order_async"},
        {"arguments": {"item": "gold"}},
        {"arguments": {}},
        {"state": ""},
        {"state": "x" * 300_000},
    ],
)
def test_a_state_is_good_for_its_own_call_only(client, change):
    arguments = answer_arguments(client.call("order", item="tea"), count=3) | change
    refused = client.call("answer_questions", **arguments)
    assert (app_status(refused), refused["isError"]) == ("ended", True)


def test_a_late_answer_is_refused_and_the_log_says_why(version):
    client = app(version)
    asked = client.call("order", item="tea")
    client.clock.advance(601)
    assert app_status(client.answer_in_app(asked, count=3)) == "ended"
    [reason] = [fields["reason"] for event, fields in client.observer.events if event == "state_refused"]
    assert reason == "expired"


def test_a_call_without_answers_renews_the_state_for_as_long_as_the_flow_lives():
    client = app()
    asked = client.call("order", item="tea")
    for _ in range(5):
        client.clock.advance(590)
        asked = client.answer_in_app(asked)
        assert app_status(asked) == "asking"
    client.clock.advance(650)
    assert app_status(client.answer_in_app(asked, count=3)) == "ended"


def test_a_client_without_views_has_no_answer_tool(version):
    client = app(version)
    asked = client.call("order", item="tea")
    model = client.by(capabilities={}).connected()
    error = model.call_error("answer_questions", **answer_arguments(asked))
    assert (error["code"], error["message"]) == (-32602, "Unknown tool: answer_questions")


def test_an_unknown_tool_cannot_be_answered(client):
    arguments = answer_arguments(client.call("order", item="tea")) | {"tool": "nothing"}
    error = client.call_error("answer_questions", **arguments)
    assert (error["code"], error["message"]) == (-32602, "Unknown tool: nothing")
    arguments["tool"] = "answer_questions"
    assert client.call_error("answer_questions", **arguments)["code"] == -32602


@pytest.mark.parametrize("through_door", [False, True])
def test_the_scopes_of_the_tool_that_asked_are_needed(through_door, version):
    allowed = app(version, through_door=through_door, scopes=("shop:all",))
    asked = allowed.call("guarded")
    other = allowed.by(scopes=()).connected()
    refused = other.send_call("answer_questions", answer_arguments(asked, count=3))
    assert json.loads(refused.body)["error"]["message"] == "Insufficient scope"
    assert text(allowed.answer_in_app(asked, count=3)) == "3"


def test_the_name_in_the_header_is_that_of_the_answer_tool():
    client = app()
    arguments = answer_arguments(client.call("order", item="tea"))
    body = client.body("tools/call", name="answer_questions", arguments=arguments)
    assert json.loads(client.send(body, mcp_name="order").body)["error"]["code"] == -32020


def test_too_many_answers_are_refused_unread():
    client = app()
    arguments = answer_arguments(client.call("order", item="tea"))
    arguments["answers"] = {f"key {number}": {} for number in range(MAX_JSON_VALUES)}
    assert client.call_error("answer_questions", **arguments)["code"] == -32600


def test_answers_to_questions_that_were_not_asked_do_not_count(client):
    again = client.answer_in_app(client.call("order", item="tea"), count=3, sure=True)
    assert list(again["_meta"][QUESTIONS]["requests"]) == ["sure"]
    assert CHARGED == []


def test_the_state_for_the_view_is_refused_in_another_tool_call():
    client = app()
    state = client.call("order", item="tea")["_meta"][QUESTIONS]["state"]
    refused = client.post_call("order", {"item": "gold"}, requestState=state)
    assert refused["error"]["code"] == -32602


def test_without_a_key_the_call_is_an_internal_error(version):
    error = KeyServiceError("ThrottlingException")
    unavailable = Mock(**{"seal.side_effect": error, "open.side_effect": error})
    client = app(version, replaced_ports={"state_codec": lambda: unavailable})
    assert client.call_error("order", item="tea")["code"] == -32603
    arguments = {"tool": "order", "arguments": {}, "state": "x", "answers": {}}
    assert client.call_error("answer_questions", **arguments)["code"] == -32603


def test_the_list_names_the_views_and_the_answer_tool(client):
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    views = {name: tool.get("_meta", {}).get("ui", {}).get("resourceUri") for name, tool in tools.items()}
    questions = "ui://mcp-roundtrip/questions"
    assert views == {
        **dict.fromkeys(("order", "order_async", "sign_in", "guarded"), questions),
        "forecast": "ui://shop/forecast",
        "plain": None,
        "answer_questions": None,
    }
    assert tools["order"]["_meta"]["ui/resourceUri"] == questions
    assert tools["answer_questions"]["_meta"]["ui"]["visibility"] == ["app"]
    assert "outputSchema" not in tools["order"]
    assert "outputSchema" in tools["forecast"]


def test_the_list_of_other_clients_has_no_views():
    listed = app(capabilities={}).result("tools/list")["tools"]
    assert "answer_questions" not in {tool["name"] for tool in listed}
    assert [tool for tool in listed if "_meta" in tool] == []


def test_views_are_read_by_their_uri_and_not_listed(client):
    for uri, start in (
        ("ui://mcp-roundtrip/questions", "<!doctype html>"),
        ("ui://shop/forecast", DOCUMENT),
    ):
        (content,) = client.result("resources/read", uri=uri)["contents"]
        assert (content["uri"], content["mimeType"]) == (uri, UI_MIME_TYPE)
        assert content["text"].startswith(start)
        assert "csp" not in content["_meta"]["ui"]
    assert client.result("resources/list")["resources"] == []
    assert client.result("resources/templates/list")["resourceTemplates"] == []
    for uri in ("ui://shop/order", "ui://other/forecast", "ui://", "docs://x"):
        assert client.error("resources/read", uri=uri)["code"] in (-32601, -32602, -32002)


@pytest.mark.parametrize("through_door", [False, True])
def test_the_view_of_a_tool_with_scopes_needs_them_and_is_shared_by_no_cache(through_door):
    scoped = Server("scoped", scopes={})

    @scoped.tool(ui=DOCUMENT, scopes=("read",))
    def secret() -> str:
        return "secret"

    @scoped.tool(ui=DOCUMENT)
    def open_to_all() -> str:
        return "open"

    allowed = app(server=scoped, through_door=through_door, scopes=("read",))
    scopes = {
        uri: allowed.result("resources/read", uri=uri)["cacheScope"]
        for uri in ("ui://scoped/secret", "ui://scoped/open_to_all")
    }
    assert scopes == {"ui://scoped/secret": "private", "ui://scoped/open_to_all": "public"}
    refused = allowed.by(scopes=()).error("resources/read", uri="ui://scoped/secret")
    assert refused["message"] == "Insufficient scope"


def test_clients_that_show_views_learn_that_the_server_has_them(client, version):
    if version == PROTOCOL_VERSION:
        discovered = client.result("server/discover")
        assert discovered["cacheScope"] == "private"
    else:
        discovered = client.initialize()
    capabilities = discovered["capabilities"]
    assert capabilities["extensions"]["io.modelcontextprotocol/ui"] == {"elicitation": {}}
    assert capabilities["resources"] == {}


def test_other_clients_see_no_views():
    client = app(capabilities={})
    discovered = client.result("server/discover")
    assert "resources" not in discovered["capabilities"]
    assert discovered["cacheScope"] == "public"
    assert client.error("resources/list")["code"] == -32601


def test_a_view_may_be_a_file(tmp_path):
    path = tmp_path / "view.html"
    path.write_text(f"\n{DOCUMENT}")
    server = Server("one")
    server.tool(ui=path)(plain)
    [content] = app(server=server).result("resources/read", uri="ui://one/plain")["contents"]
    assert content["text"].strip() == DOCUMENT


def test_the_name_of_the_answer_tool_is_reserved():
    with pytest.raises(DefinitionError, match="registered twice"):
        Server("one").tool("answer_questions")(plain)


def test_a_tool_with_a_view_of_its_authors_own_or_with_a_task_is_not_asked_in_a_view():
    own = Server("own", channels=("app",))

    @own.tool(meta={"ui": {"resourceUri": "ui://own/x"}})
    def shown(ctx: Context) -> int:
        return ctx.elicit("count", "How many?", int)

    assert app(server=own).call_error("shown")["code"] == -32021


def test_async_tools_run_in_an_event_loop_of_their_own():
    asked = asyncio.run(asyncio.to_thread(app().call, "order_async", item="tea"))
    assert app_status(asked) == "asking"
