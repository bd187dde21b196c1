"""An answer that does not count tells somebody: the client, the user who is asked again, and the operator."""

from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import EVERYTHING, Player
from support.client_requests import accepted

SECRET = "hunter2"

changes_questions = pytest.mark.filterwarnings("ignore::mcp_roundtrip_testing.QuestionChanged")

EXTENDED = {**EVERYTHING, "extensions": {"com.example/approval": {}}}


class User(BaseModel, extra="forbid"):
    name: str = Field(max_length=16)

    @field_validator("name")
    @classmethod
    def is_free(cls, name: str) -> str:
        if name == SECRET:
            raise ValueError(f"{name} is taken")
        return name


server = Server("asks", namespaced_requests=True)


@server.tool
def form(ctx: Context) -> str:
    return ctx.elicit("q", "Who?", User).name


@server.tool
def url(ctx: Context) -> str:
    ctx.elicit_url("q", "Go", "https://x.test", done=lambda: True)
    return "visited"


@server.tool
def sampling(ctx: Context) -> str:
    return ctx.sample("q", "Summarize.", max_tokens=10).text


@server.tool
def roots(ctx: Context) -> list[str]:
    return [root.uri for root in ctx.list_roots("q")]


@server.tool
def namespaced(ctx: Context) -> Any:
    return ctx.request("q", "com.example/approval", {})


def refusals(play):
    return [fields for event, fields in play.observer.events if event == "answer_refused"]


SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}}

MALFORMED = [
    ("form", {"action": "Accept", "content": {"name": SECRET}}, "q.action"),
    ("form", {"action": "accept", "content": SECRET}, "q.content"),
    ("form", SECRET, "q"),
    ("form", None, "q"),
    ("url", {"action": SECRET}, "q.action"),
    ("url", [], "q"),
    ("sampling", {**SAMPLED, "role": SECRET}, "q.role"),
    ("sampling", {**SAMPLED, "content": [{"type": "text", "text": "a"}, {"text": SECRET}]}, "q.content[1]"),
    ("sampling", {**SAMPLED, "content": {"type": "text", "text": None}}, "q.content.text"),
    ("sampling", {**SAMPLED, "content": {"type": "tool_use", "id": "1", "name": "a"}}, "q.content.input"),
    ("sampling", {**SAMPLED, "content": [{"type": "image", "data": 1}]}, "q.content[0].data"),
    ("sampling", {**SAMPLED, "content": SECRET}, "q.content"),
    ("sampling", {**SAMPLED, "model": None}, "q.model"),
    ("sampling", {**SAMPLED, "stopReason": 7}, "q.stopReason"),
    ("sampling", {**SAMPLED, "content": {"type": "text", "text": "\ud83d"}}, "q"),
    ("roots", {"roots": None}, "q.roots"),
    ("roots", {"roots": [{"uri": "file:///\ude00"}]}, "q"),
    ("roots", {"roots": [{"uri": "file:///a"}, {"name": SECRET}]}, "q.roots[1].uri"),
    ("roots", {"roots": [{"uri": "file:///a", "name": 7}]}, "q.roots[0].name"),
    ("namespaced", SECRET, "q"),
    ("namespaced", {"a": ["\ud83d"]}, "q"),
]


@pytest.mark.parametrize(("tool", "answer", "member"), MALFORMED)
def test_a_malformed_answer_is_an_error_that_names_the_member(tool, answer, member):
    play = Player(server, EXTENDED)
    asked = play.call(tool)
    refused = asked.respond({"q": answer})
    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert f"inputResponses.{member} " in refused.error["message"]
    [line] = refusals(play)
    assert (line["tool"], line["key"]) == (tool, "q")
    assert line["reason"]
    assert SECRET not in f"{line} {refused.error}"
    assert asked.respond({"q": GOOD[tool]}).result["resultType"] == "complete", "nothing is lost"


GOOD = {
    "form": accepted({"name": "ada"}),
    "url": {"action": "accept"},
    "sampling": SAMPLED,
    "roots": {"roots": []},
    "namespaced": {},
}


@pytest.mark.parametrize(
    ("content", "shown", "logged"),
    [
        ({"name": SECRET}, "taken", "name"),
        ({"name": SECRET * 3}, "16 characters", "16 characters"),
        ({}, "Field required", "Field required"),
        ({"name": "ada", SECRET: 1}, SECRET, "unknown member"),
    ],
)
def test_a_refused_form_tells_the_user_and_the_operator(content, shown, logged):
    play = Player(server)
    again = play.call("form").respond({"q": accepted(content)})
    assert shown in again.question("q")
    [line] = refusals(play)
    assert logged in line["reason"]
    assert SECRET not in str(line)


@changes_questions
def test_the_error_after_the_last_round_names_a_question_that_changes_in_every_round():
    changing, minutes = Server("asks"), count(1)

    @changing.tool
    def tool(ctx: Context) -> str:
        return ctx.elicit("q", f"It is {next(minutes)} past five in {SECRET}. Who?", str)

    play = Player(changing)
    ended = play.call("tool")
    while ended.asked:
        ended = ended.respond({"q": accepted({"value": "ada"})})
    assert "'q'" in ended.text
    assert "changed" in ended.text
    assert SECRET not in ended.text
