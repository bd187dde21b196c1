"""A response over the limit of its event source is replaced by an error."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES, RESPONSE_OVERHEAD, HttpRequest, payload_size
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip_testing import Player
from support.client_requests import TASKS, refused
from support.deployment import Deployment, legacy
from support.messages import META, call, headers, message
from support.servers import server_of

TOKEN = {**META, "progressToken": 1}


def limited(client, body, limit):
    given = headers(body) if "_meta" in body["params"] else {"mcp-protocol-version": "2025-11-25"}
    request = HttpRequest("POST", given, json.dumps(body), max_response_bytes=limit)
    invocation = Invocation("id", 1e18, max_response_bytes=limit)
    return client.server.endpoint.respond(request, client.ports(), invocation)


def signing_in(text):

    def sign_in(ctx: Context) -> str:
        ctx.elicit_url("sign in", text, "https://mcp.test/sign-in", done=lambda: False)
        return ""

    return sign_in


@pytest.mark.parametrize("limit", [2_000, 990_000])
@pytest.mark.parametrize("notifications", [0, 40])
def test_no_response_exceeds_the_limit_of_its_event_source(limit, notifications):
    text, steps = "a" * limit, "is repeated: count."

    def result(ctx: Context) -> str:
        ctx.step("count", lambda: text)
        for number in range(notifications):
            ctx.progress(number, message="a" * (limit // 40))
        return text

    server = server_of(result, signing_in(text))
    server.prompt("prompt")(lambda: text)
    server.resource("text://long", name="resource")(lambda: text)
    client = Deployment(server, user=None)
    urls = {**TOKEN, META_CLIENT_CAPABILITIES: {"elicitation": {"url": {}}}}
    for body, ends_with in (
        (call("result", meta=TOKEN), steps),
        (call("sign_in", meta=urls), "at most."),
        (message("prompts/get", name="prompt"), "at most."),
        (message("resources/read", uri="text://long"), "at most."),
    ):
        answer = limited(client, body, limit)
        assert (answer.status, len(json.dumps(answer.body)) <= limit) == (200, True)
        assert f"{limit} bytes" in answer.body
        assert ends_with in answer.body
        assert text in limited(client, body, 10 * limit).body
    assert client.failures == ["result_too_large"] * 4


@pytest.mark.parametrize(
    ("hides", "page_size", "pages"), [(False, 8, [40, 8, 5, 5, 5]), (True, 40, [40, 8, 4, 1, 1])]
)
def test_a_list_over_the_limit_of_its_event_source_has_pages_of_whole_items(hides, page_size, pages):
    server = Server("shop", hide_unauthorized=hides, page_size=page_size)
    names = [f"tool_{number}" for number in range(40)]
    for number, name in enumerate(names):
        server.tool(name=name, description='"' * (number * number // 2))(lambda: "")
    client = Deployment(server, user=None)
    limits = (19_000, 35_000, 50_000, 75_000, MAX_RESPONSE_BYTES)
    for limit, expected in zip(limits, pages, strict=True):
        listed, cursors = [], [{}]
        for cursor in cursors:
            answer = limited(client, client.body("tools/list", **cursor), limit)
            assert payload_size(answer.body) <= limit
            page = json.loads(answer.body)["result"]
            listed += [tool["name"] for tool in page["tools"]]
            cursors += [{"cursor": page["nextCursor"]}] if "nextCursor" in page else []
        assert (listed, len(cursors)) == (names, expected)


def test_a_result_over_the_limit_for_a_legacy_client_is_replaced_by_one_of_its_version():
    def report() -> str:
        return "a" * 5_000

    client = legacy(server_of(report))
    answer = limited(client, client.body("tools/call", name="report", arguments={}), 5_000)
    result = json.loads(answer.body)["result"]
    assert result["isError"] is True
    assert "resultType" not in result


def test_an_error_over_the_limit_for_a_legacy_client_is_replaced():
    client = legacy(server_of(signing_in("a" * 5_000)))
    codes = []
    for limit in (20_000, 5_000):
        answer = limited(client, client.body("tools/call", name="sign_in", arguments={}), limit)
        assert len(answer.body) <= limit
        codes.append(refused(answer)[1])
    assert codes == [-32042, -32603]
    assert client.failures == ["result_too_large"]


def test_a_completed_task_whose_result_is_over_the_limit_has_an_error_for_a_result():
    server = Server("tasks")

    @server.tool(task="required")
    def report(ctx: Context, size: int = 1_250) -> str:
        ctx.step("count", lambda: size)
        ctx.run_as_task()
        return '"' * size  # of 4 bytes: JSON text in the JSON of Lambda's response

    client = Deployment(server, capabilities=TASKS, user=None)
    body = client.body("tasks/get", taskId=client.run_task("report"))
    whole, cut = (limited(client, body, limit) for limit in (20_000, 5_000))
    assert len(cut.body) <= 5_000
    full, short = (json.loads(answer.body)["result"] for answer in (whole, cut))
    assert short["result"]["isError"]
    assert {**short, "result": full["result"]} == full
    size = (MAX_RESPONSE_BYTES - RESPONSE_OVERHEAD) // 4
    too_large = client.task(client.run_task("report", size=size)).result
    assert "is repeated: count." in too_large["content"][0]["text"]


def test_an_error_about_a_size_names_the_steps_of_earlier_rounds():
    server = Server("sizes")

    @server.tool
    def asks(ctx: Context) -> str:
        ctx.now("when")
        ctx.step("count", lambda: 3)
        if len(ctx.elicit("name", "Name?", str)) > 1:
            ctx.confirm("sure", "Sure?")
        return "a" * 7_000_000

    asked = Player(server).call("asks")
    for name, problem in (("a", "result is"), ("a" * 60_000, "answers are")):
        [content] = asked.answer(name=name).result["content"]
        assert problem in content["text"]
        assert "is repeated: count." in content["text"], "and the time, which is no step, is not named"
