"""Prompts: lists, string arguments, return values and errors."""

from datetime import date
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import Field

from mcp_roundtrip import (
    DefinitionError,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceLink,
    Server,
)
from mcp_roundtrip_testing import Player
from support.servers import server_of

server = Server("prompts")


class Tone(Enum):
    KIND = "kind"
    STERN = "stern"


@server.prompt()
def review(
    code: Annotated[str, Field(description="What to look at")],
    lines: int = 10,
    tone: Tone = Tone.KIND,
    since: date | None = None,
) -> list[PromptMessage]:
    """Review some code.

    Args:
        lines: The number of lines.
    """
    said = f"{code}, {lines + 1} lines, {tone.value}, {since}"
    return [PromptMessage(said), PromptMessage("Certainly.", role="assistant")]


@server.prompt("with.title", title="A title", icons=[{"src": "https://a.example/i.png"}], meta={"a/b": 1})
def titled() -> str:
    return "Say something."


@server.prompt(description="All kinds of content")
def everything() -> list[Any]:
    return [
        "text",
        Image(b"\x89PNG", "image/png"),
        EmbeddedResource("test://a", text="a"),
        ResourceLink("test://b", "b"),
        PromptMessage(Image(b"x", "image/gif"), "assistant"),
    ]


@pytest.fixture
def play():
    return Player(server)


def test_prompts_are_listed_as_they_are_declared(play):
    listed = play.request("prompts/list")["result"]
    names = [prompt["name"] for prompt in listed["prompts"]]
    assert names == ["review", "with.title", "everything"]
    assert listed["prompts"][0] == {
        "name": "review",
        "description": "Review some code.",
        "arguments": [
            {"name": "code", "description": "What to look at", "required": True},
            {"name": "lines", "description": "The number of lines.", "required": False},
            {"name": "tone", "required": False},
            {"name": "since", "required": False},
        ],
    }
    assert listed["prompts"][1] == {
        "name": "with.title",
        "title": "A title",
        "icons": [{"src": "https://a.example/i.png"}],
        "_meta": {"a/b": 1},
    }
    assert (listed["cacheScope"], listed["ttlMs"]) == ("public", 300_000)
    capabilities = play.request("server/discover")["result"]["capabilities"]
    assert capabilities.keys() == {"tools", "prompts", "completions", "logging"}


def test_arguments_are_converted_from_text_to_their_annotations(play):
    given = {"code": "x = 1", "lines": "4", "tone": "stern", "since": "2026-07-28"}
    played = play.prompt("review", given)
    assert played.messages == [
        {"role": "user", "content": {"type": "text", "text": "x = 1, 5 lines, stern, 2026-07-28"}},
        {"role": "assistant", "content": {"type": "text", "text": "Certainly."}},
    ]
    assert played.result["description"] == "Review some code."
    assert "ttlMs" not in played.result


@pytest.mark.parametrize(
    "arguments",
    [{}, {"code": 1}, {"code": "x", "lines": "many"}, {"code": "x", "lines": 4}, {"code": "x", "other": "y"}],
    ids=str,
)
def test_an_unknown_prompt_and_invalid_arguments_are_invalid_params_and_not_quoted(play, arguments):
    for name in ("review", "unknown", ""):
        refused = play.prompt(name, arguments)
        assert (refused.status, refused.error["code"]) == (400, -32602)
        assert "many" not in refused.error["message"]


def test_a_prompt_may_return_every_content_block(play):
    played = play.prompt("everything")
    kinds = [(message["role"], message["content"]["type"]) for message in played.messages]
    assert kinds == [
        ("user", "text"), ("user", "image"), ("user", "resource"), ("user", "resource_link"),
        ("assistant", "image"),
    ]  # fmt: skip


def test_the_decorator_needs_no_parentheses():
    other = Server("other")

    @other.prompt
    def bare(text: str = Field(description="What to say")) -> str:
        return text

    [listed] = Player(other).request("prompts/list")["result"]["prompts"]
    assert listed["name"] == "bare"
    assert listed["arguments"] == [{"name": "text", "description": "What to say", "required": True}]
    with pytest.raises(DefinitionError):
        other.resource(bare)  # what a forgotten URI looks like
    with pytest.raises(DefinitionError):
        other.prompt("bare")(bare)


def test_an_alias_is_the_name_of_the_argument():
    def aliased(class_: Annotated[Literal["first", "second"], Field(alias="class")]) -> str:
        return class_

    other = server_of(prompts=[aliased])
    play = Player(other)
    [listed] = play.request("prompts/list")["result"]["prompts"]
    assert listed["arguments"] == [{"name": "class", "required": True}]
    assert play.prompt("aliased", {"class": "first"}).messages[0]["content"]["text"] == "first"
    other.completion("aliased", "class")(lambda value: ["x"])
    with pytest.raises(DefinitionError):
        other.completion("aliased", "class_")(lambda value: ["x"])


UserId = NewType("UserId", str)


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [(UserId, "u"), (Annotated[UserId, Field(min_length=1)], "u"), (IntEnum("Level", "LOW"), "1"),
     (Literal["a", 1], "a"),
     (list[str] | Literal["all"], "all"), (bool, "true"), (dict[str, int], '{"a": 1}'),
     (Literal[1, 2], "2"), (Annotated[int, Field(ge=1)], "3"), (None, "null")],
)  # fmt: skip
def test_an_argument_may_have_any_type_whose_json_is_sent_as_text(annotation, sent):
    def prompt(argument: Any) -> str:
        return "x"

    prompt.__annotations__["argument"] = annotation
    assert Player(server_of(prompts=[prompt])).prompt("prompt", {"argument": sent}).messages
