"""Resources by URI and by template: contents, caching, questions, and missing resources."""

from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, ResourceNotFound, Server
from mcp_roundtrip_testing import Player

server = Server("resources")


@server.resource(
    "test://text", mime_type="text/plain", title="A text", size=5, annotations={"priority": 0.5},
    ttl_ms=60_000, cache_scope="public",
)  # fmt: skip
def text() -> str:
    """Some text."""
    return "hello"


@server.resource("test://bytes", mime_type="image/png")
def some_bytes() -> bytes:
    return b"\x89PNG"


@server.resource("repo://{owner}/{number}{?state}")
def issue(owner: str, number: int, state: str = "open") -> dict[str, Any]:
    """An issue."""
    if number > 100:
        raise ResourceNotFound
    return {"owner": owner, "next": number + 1, "state": state}


@server.resource("file:///{+path}")
def file(path: str) -> str:
    return path


@server.resource("file:///here")
def here() -> str:
    return "the one"


@server.resource("ask://{topic}", ttl_ms=60_000, cache_scope="public")
def asks(ctx: Context, topic: str) -> str:
    return f"{topic}: {ctx.elicit('why', 'Why?', str)}"


@server.resource("later://{topic}")
async def asks_later(ctx: AsyncContext, topic: str) -> str:
    return await ctx.elicit("why", "Why?", str)


@pytest.fixture
def play():
    return Player(server)


def test_resources_and_templates_are_listed_separately(play):
    listed = play.request("resources/list")["result"]
    assert [resource["uri"] for resource in listed["resources"]] == [
        "test://text", "test://bytes", "file:///here",
    ]  # fmt: skip
    assert listed["resources"][0] == {
        "uri": "test://text",
        "name": "text",
        "description": "Some text.",
        "mimeType": "text/plain",
        "title": "A text",
        "size": 5,
        "annotations": {"priority": 0.5},
    }
    templates = play.request("resources/templates/list")["result"]["resourceTemplates"]
    assert templates[0] == {
        "uriTemplate": "repo://{owner}/{number}{?state}",
        "name": "issue",
        "description": "An issue.",
    }
    assert len(templates) == 4


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("repo://ann/4", '{"owner": "ann", "next": 5, "state": "open"}'),
        ("repo://a%2Fb/4?state=50%25", '{"owner": "a/b", "next": 5, "state": "50%"}'),
    ],
)
def test_variables_are_decoded_and_converted_to_their_annotations(play, uri, contents):
    assert play.read(uri).contents == [{"uri": uri, "mimeType": "application/json", "text": contents}]


def test_a_result_has_ttl_and_cache_scope(play):
    results = [
        play.read("test://text").result,
        play.read("test://bytes").result,
        play.request("resources/read", uri="test://text", inputResponses={})["result"],  # a retry
    ]
    expected = [(60_000, "public"), (0, "private"), (0, "private")]
    assert [(result["ttlMs"], result["cacheScope"]) for result in results] == expected


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


def test_a_fixed_uri_takes_precedence_over_a_template_whose_path_keeps_its_slashes(play):
    assert play.read("file:///here").contents[0]["text"] == "the one"
    assert play.read("file:///there").contents[0]["text"] == "there"
    assert play.read("file:///a/b%20c.txt").contents[0]["text"] == "a/b c.txt"
    assert play.request("resources/read", uri="file:///" + "a" * 10_000)["error"]["code"] == -32602
