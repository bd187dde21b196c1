"""Completion of arguments: suggestions, their number, and refused requests."""

from collections.abc import Mapping
from typing import Literal

import pytest

from mcp_roundtrip import Completion, Server
from mcp_roundtrip_testing import Player

server = Server("completions")
LANGUAGES = ["python", "pytorch", "pyside", "rust"]


@server.prompt()
def review(language: str, framework: str, tone: Literal["kind", "keen", "stern"] = "kind") -> str:
    return "x"


@server.resource("repo://{owner}/{name}")
def repository(owner: str, name: str) -> str:
    return "x"


@server.resource("test://static")
def static() -> str:
    return "x"


@server.completion("review", "language")
def languages(value: str) -> list[str]:
    return [language for language in LANGUAGES if language.startswith(value)]


@server.completion("review", "framework")
def frameworks(value: str, arguments: Mapping[str, str]) -> Completion:
    return Completion([f"{arguments.get('language', 'any')}-{value}"], total=7, has_more=True)


@server.completion("repo://{owner}/{name}", "owner")
def owners(value: str) -> list[str]:
    return [f"{value}{number}" for number in range(250)]


@server.completion("repo://{owner}/{name}", "name")
def names(value: str) -> list[str]:
    raise RuntimeError("secret")


def complete(ref, argument, value, on=server, **more):
    params = {"ref": ref, "argument": {"name": argument, "value": value}, **more}
    return Player(on).request("completion/complete", **params)


def suggesting(suggest):
    """Return a server whose prompt `p` has this completion of `language`."""
    other = Server("other")
    other.prompt("p")(review)
    if suggest is not None:
        other.completion("p", "language")(suggest)
    return other


P = {"type": "ref/prompt", "name": "p"}


PROMPT = {"type": "ref/prompt", "name": "review"}
TEMPLATE = {"type": "ref/resource", "uri": "repo://{owner}/{name}"}


def test_a_prefix_is_completed_with_the_other_arguments_in_up_to_a_hundred_suggestions():
    assert complete(PROMPT, "language", "py")["result"]["completion"] == {
        "values": ["python", "pytorch", "pyside"],
        "total": 3,
        "hasMore": False,
    }
    found = complete(PROMPT, "framework", "fl", context={"arguments": {"language": "python"}})
    assert found["result"]["completion"] == {"values": ["python-fl"], "total": 7, "hasMore": True}
    completion = complete(TEMPLATE, "owner", "a")["result"]["completion"]
    assert (len(completion["values"]), completion["hasMore"]) == (100, True)


@pytest.mark.parametrize(
    ("argument", "typed", "suggest", "values"),
    [
        ("tone", "ke", None, ["keen"]),  # a choice of a Literal
        ("language", "x", None, []),
        ("language", "", lambda value: {"python"}, ["python"]),
    ],
)
def test_suggestions_come_from_the_type_or_from_any_iterable(argument, typed, suggest, values):
    found = complete(P, argument, typed, suggesting(suggest))["result"]["completion"]
    assert (found["values"], found["total"], found["hasMore"]) == (values, len(values), False)


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


def test_a_completion_that_raises_is_a_logged_internal_error():
    play = Player(server)
    params = {"ref": TEMPLATE, "argument": {"name": "name", "value": "s"}}
    failed = play.request("completion/complete", **params)["error"]
    assert failed["code"] == -32603
    assert "secret" not in failed["message"]
    assert [event for event, _ in play.observer.failures] == ["completion_raised"]
