"""Resources by URI and by template: contents, caching, questions, and missing resources."""

from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, ResourceNotFound, Server
from mcp_roundtrip_testing import Player

server = Server("resources")


@server.resource("test://text")
def text() -> str:
    """Some text."""
    return "hello"


@server.resource("repo://{owner}/{number}{?state}")
def issue(owner: str, number: int, state: str = "open") -> dict[str, Any]:
    """An issue."""
    if number > 100:
        raise ResourceNotFound
    return {"owner": owner, "next": number + 1, "state": state}


@server.resource("ask://{topic}", ttl_ms=60_000, cache_scope="public")
def asks(ctx: Context, topic: str) -> str:
    return f"{topic}: {ctx.elicit('why', 'Why?', str)}"


@server.resource("later://{topic}")
async def asks_later(ctx: AsyncContext, topic: str) -> str:
    return await ctx.elicit("why", "Why?", str)


@pytest.fixture
def play():
    return Player(server)


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("repo://ann/4", '{"owner": "ann", "next": 5, "state": "open"}'),
        ("repo://a%2Fb/4?state=50%25", '{"owner": "a/b", "next": 5, "state": "50%"}'),
    ],
)
def test_variables_are_decoded_and_converted_to_their_annotations(play, uri, contents):
    assert play.read(uri).contents == [{"uri": uri, "mimeType": "application/json", "text": contents}]


@pytest.mark.parametrize("uri", ["ask://whales", "later://whales"])
def test_a_resource_can_ask_and_a_result_with_answers_is_not_cacheable(uri):
    play = Player(server, always_replay=True)
    asked = play.read(uri)
    assert asked.result.keys().isdisjoint({"ttlMs", "cacheScope"})
    answered = asked.answer(why="Because.")
    assert "Because." in answered.contents[0]["text"]
    assert (answered.result["ttlMs"], answered.result["cacheScope"]) == (0, "private")
    other = uri.replace("whales", "birds")
    moved = play.request("resources/read", uri=other, requestState=asked.state, inputResponses={})
    assert moved["error"]["code"] == -32602


REPOS = ("ann/4/5", "ann/four", "ann/101", "%zz/4")
MISSING = ["test://nothing", "test://TEXT/", "", *(f"repo://{each}" for each in REPOS)]


@pytest.mark.parametrize("uri", MISSING)
def test_the_error_for_a_missing_resource_names_its_uri(play, uri):
    refused = play.request("resources/read", uri=uri)["error"]
    assert (refused["code"], refused["data"]) == (-32602, {"uri": uri})
