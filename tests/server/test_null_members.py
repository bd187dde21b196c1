"""A member that a client may leave out may be null: official types write it so."""

from typing import Any

import pytest
from mcp_types import _v2026_07_28 as types
from pydantic import BaseModel

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import Player
from mcp_roundtrip_testing.http_requests import read_messages
from support.deployment import Deployment
from support.messages import META, message

server = Server("nulls")


@server.tool
def size(ctx: Context) -> int:
    return ctx.elicit("size", "How large?", int)


@server.tool
def visit(ctx: Context) -> str:
    ctx.elicit_url("page", "Go", "https://x.test", done=lambda: True)
    return "visited"


@server.tool
def summary(ctx: Context) -> Any:
    sampled = ctx.sample("say", "Summarize.", max_tokens=10)
    return [sampled.role, sampled.content, sampled.model, sampled.stop_reason]


@server.tool
def roots(ctx: Context) -> list[list[str | None]]:
    return [[root.uri, root.name] for root in ctx.list_roots()]


@server.prompt
def greet(name: str = "you") -> str:
    return f"Hello, {name}"


@server.resource("file:///{name}")
def read(name: str) -> str:
    return name


def with_nulls(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True)


def without_nulls(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


TEXT = types.TextContent(type="text", text="short")
TOOL_USE = types.ToolUseContent(type="tool_use", id="1", name="look", input={"city": None})
TOOL_RESULT = types.ToolResultContent(type="tool_result", toolUseId="1", content=[TEXT])
IMAGE = types.ImageContent(type="image", data="", mimeType="image/png", annotations=types.Annotations())


@pytest.mark.parametrize(
    ("tool", "key", "result"),
    [
        ("size", "size", types.ElicitResult(action="decline")),
        ("visit", "page", types.ElicitResult(action="accept")),
        ("visit", "page", types.ElicitResult(action="cancel")),
        ("summary", "say", types.CreateMessageResult(role="assistant", model="m", content=TEXT)),
        ("summary", "say", types.CreateMessageResult(role="assistant", model="m", content=[TOOL_USE, IMAGE])),
        ("summary", "say", types.CreateMessageResult(role="user", model="m", content=[TOOL_RESULT])),
        ("roots", "roots", types.ListRootsResult(roots=[types.Root(uri="file:///a")])),
    ],
)
def test_an_answer_of_the_official_types_counts_with_its_nulls(tool, key, result):
    asked = Player(server).call(tool)
    null, absent = (asked.respond({key: dump(result)}) for dump in (with_nulls, without_nulls))
    assert with_nulls(result) != without_nulls(result)
    assert null.message["result"] == absent.message["result"]
    assert null.result["resultType"] == "complete"
    assert null.journal == absent.journal


def official_meta(**capabilities):
    given = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    return types.RequestMetaObject.model_validate(given)


def requests():
    meta = official_meta(elicitation={"form": {}}, sampling={}, extensions={})
    yield "tools/call", types.CallToolRequestParams(_meta=meta, name="size")
    yield "tools/call", types.CallToolRequestParams(_meta=official_meta(elicitation={}), name="size")
    yield "tools/call", types.CallToolRequestParams(_meta=official_meta(elicitation={}), name="visit")
    yield "prompts/get", types.GetPromptRequestParams(_meta=meta, name="greet")
    yield "resources/read", types.ReadResourceRequestParams(_meta=meta, uri="file:///x")
    for member in ("tools", "prompts", "resources", "resources/templates"):
        yield f"{member}/list", types.PaginatedRequestParams(_meta=meta)
    yield "server/discover", types.RequestParams(_meta=meta)
    every = types.SubscriptionFilter()
    yield "subscriptions/listen", types.SubscriptionsListenRequestParams(_meta=meta, notifications=every)
    given = {"_meta": meta, "ref": {"type": "ref/prompt", "name": "greet"}}
    argument = {"name": "name", "value": ""}
    for context in (None, {"arguments": None}):
        completing = {**given, "argument": argument, "context": context}
        yield "completion/complete", types.CompleteRequestParams.model_validate(completing)


@pytest.mark.parametrize(("method", "params"), list(requests()))
def test_a_request_of_the_official_types_is_served_with_its_nulls(method, params):
    assert with_nulls(params) != without_nulls(params)
    client = Deployment(server, user=None, has_table=False)
    requests = [message(method, meta=None, **dump(params)) for dump in (with_nulls, without_nulls)]
    null, absent = map(client.send, requests)
    assert (null.status, shape(null)) == (absent.status, shape(absent))


def shape(response):
    """Return the last message of a response; a state differs in each one."""
    message = read_messages(response)[-1]
    if "requestState" in message.get("result", {}):
        message["result"]["requestState"] = ""
    return message
