"""Prompts, resources, and the completion of their arguments."""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import Field

from mcp_roundtrip import Completion, Context, DefinitionError, Server
from mcp_roundtrip_testing import Player
from support.servers import server_of

server = Server("prompts")
LANGUAGES = ["python", "pytorch", "pyside", "rust"]


@server.prompt(name="review")
def review_change(language: str, framework: str = "", lines: int = 10) -> str:
    return f"{language}, {framework}, {lines} lines"


@server.resource("repo://{owner}")
def repository(ctx: Context, owner: str) -> str:
    """A repository.

    Args:
        ctx: The context of the call.
        owner: A user or an organization.
    """
    return owner


@server.resource("issue://{owner}/{number}")
def issue(owner: str, number: Annotated[int, Field(description="From 1")]) -> str:
    """An issue.

    Args:
        owner: A user or an organization.
        number: Not that of a pull request.
    """
    return f"{owner} {number}"


@server.resource("test://static", mime_type="text/x")
def static() -> str:
    return "x"


@server.completion("review", "language")
def languages(value: str) -> list[str]:
    return [language for language in LANGUAGES if language.startswith(value)]


@server.completion("review", "framework")
def frameworks(value: str, arguments: Mapping[str, str]) -> Completion:
    return Completion([f"{arguments.get('language', 'any')}-{value}"], total=7, has_more=7)


@server.completion("repo://{owner}", "owner")
def owners(value: str) -> Iterator[str]:
    yield from (f"{value}{number}" for number in range(100 + len(value)))


@pytest.mark.parametrize(
    "arguments",
    [
        *({}, {"language": 1}, {"language": "x", "other": "y"}),
        *({"language": "x", "lines": "many"}, {"language": "x", "lines": 4}),
    ],
    ids=str,
)
def test_an_unknown_prompt_and_invalid_arguments_are_invalid_params_and_not_quoted(arguments):
    play = Player(server)
    for name in ("review", "unknown", ""):
        refused = play.prompt(name, arguments)
        assert (refused.status, refused.error["code"]) == (400, -32602)
        assert "many" not in refused.error["message"]


def test_an_alias_is_the_name_of_the_argument():
    def aliased(class_: Annotated[Literal["first", "second"], Field(alias="class")]) -> str:
        return class_

    other = server_of(prompts=[aliased])
    play = Player(other)
    [listed] = play.request("prompts/list")["result"]["prompts"]
    assert listed["arguments"] == [{"name": "class", "required": True}]
    assert play.prompt("aliased", {"class": "first"}).messages[0]["content"]["text"] == "first"
    named = {"ref": {"type": "ref/prompt", "name": "aliased"}, "argument": {"name": "class", "value": "f"}}
    assert play.request("completion/complete", **named)["result"]["completion"]["values"] == ["first"]
    other.completion("aliased", "class")(lambda value: 1 / 0)
    assert play.request("completion/complete", **named)["error"]["code"] == -32603
    assert play.observer.failures[-1][0] == "completion_raised"
    with pytest.raises(DefinitionError):
        other.completion("aliased", "class_")(lambda value: ["x"])


class Tone(Enum):
    KIND = "kind"
    STERN = "stern"


def test_arguments_are_converted_from_text_to_their_annotations():
    def plan(lines: int = 10, tone: Tone = Tone.KIND, since: date | None = None) -> str:
        return f"{lines + 1} lines, {tone.value}, {since}"

    given = {"lines": "4", "tone": "stern", "since": "2026-07-28"}
    played = Player(server_of(prompts=[plan])).prompt("plan", given)
    assert played.messages[0]["content"]["text"] == "5 lines, stern, 2026-07-28"


UserId = NewType("UserId", str)


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        *((UserId, "u"), (Annotated[UserId, Field(min_length=1)], "u"), (IntEnum("Level", "LOW"), "1")),
        *((Literal["a", 1], "a"), (list[str] | Literal["all"], "all"), (bool, "true"), (Literal[1, 2], "2")),
        *((dict[str, int], '{"a": 1}'), (Annotated[int, Field(ge=1)], "3"), (None, "null"), (Tone, "stern")),
    ],
)
def test_an_argument_may_have_any_type_whose_json_is_sent_as_text_and_whose_texts_are_completed(
    annotation, sent
):
    def prompt(argument: Any) -> str:
        return "x"

    prompt.__annotations__["argument"] = annotation
    player = Player(server_of(prompts=[prompt]))
    assert player.prompt("prompt", {"argument": sent}).messages
    offered = complete({"type": "ref/prompt", "name": "prompt"}, "argument", sent, player)["values"]
    assert offered == [each for each in ("a", "all", "stern") if each == sent]


asking = Server("asking")


@asking.resource("ask://whales", ttl_ms=60_000, cache_scope="public")
def whales(ctx: Context) -> str:
    return ctx.elicit("why", "Why?", str)


def test_the_description_of_a_template_has_the_texts_on_its_variables():
    templates = Player(server).request("resources/templates/list")["result"]["resourceTemplates"]
    described = {each["name"]: each["description"] for each in templates if "mimeType" not in each}
    assert Player(server).request("resources/list")["result"]["resources"][0]["mimeType"] == "text/x"
    owner = "\n\nArgs:\n    owner: A user or an organization."
    assert described["repository"] == f"A repository.{owner}"
    assert described["issue"] == f"An issue.{owner}\n    number: Not that of a pull request."


def test_contents_that_depend_on_an_answer_are_for_no_cache():
    read = Player(asking).read("ask://whales", why="They sing.").result
    assert (read["ttlMs"], read["cacheScope"]) == (0, "private")


PROMPT = {"type": "ref/prompt", "name": "review"}
TEMPLATE = {"type": "ref/resource", "uri": "repo://{owner}"}


def complete(ref, argument, value, player=None, **more):
    params = {"ref": ref, "argument": {"name": argument, "value": value}, **more}
    return (player or Player(server)).request("completion/complete", **params)["result"]["completion"]


def test_a_prefix_is_completed_with_the_other_arguments_in_up_to_a_hundred_suggestions():
    assert complete(PROMPT, "language", "py") == {
        "values": ["python", "pytorch", "pyside"],
        "total": 3,
        "hasMore": False,
    }
    found = complete(PROMPT, "framework", "fl", context={"arguments": {"language": "python"}})
    assert found == {"values": ["python-fl"], "total": 7, "hasMore": True}
    for value, has_more, total in (("", False, 100), ("a", True, "absent")):
        completion = complete(TEMPLATE, "owner", value)
        assert len(completion["values"]) == 100
        assert (completion["hasMore"], completion.get("total", "absent")) == (has_more, total)


LANGUAGE = {"name": "language", "value": "x"}


@pytest.mark.parametrize(
    ("ref", "params"),
    [
        ({"type": "ref/prompt", "name": "unknown"}, {"argument": LANGUAGE}),
        ({"type": "ref/resource", "uri": "repo://{x}"}, {"argument": {"name": "owner", "value": "x"}}),
        (PROMPT, {"argument": {"name": "nothing", "value": "x"}}),
        ({"type": "ref/resource", "uri": "test://static"}, {"argument": {"name": "x", "value": "x"}}),
        ({"type": "ref/tool", "name": "x"}, {"argument": {"name": "x", "value": "x"}}),
        ("review", {"argument": LANGUAGE}),
        ({"type": "ref/prompt"}, {"argument": LANGUAGE}),
        (PROMPT, {"argument": {"name": "language"}}),
        (PROMPT, {"argument": "language"}),
        (PROMPT, {}),
        (PROMPT, {"argument": {"name": "language", "value": 1}}),
        (PROMPT, {"argument": LANGUAGE, "context": {"arguments": {"a": 1}}}),
        (PROMPT, {"argument": LANGUAGE, "context": []}),
    ],
    ids=str,
)
def test_an_unknown_reference_or_argument_and_malformed_params_are_invalid_params(ref, params):
    assert Player(server).request("completion/complete", ref=ref, **params)["error"]["code"] == -32602
