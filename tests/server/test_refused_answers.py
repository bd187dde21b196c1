"""An answer that does not count tells somebody: the client, the user who is asked again, and the operator."""

from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip_testing import EVERYTHING, WITH_TASKS, Player
from support.client_requests import accepted, responses

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


@server.tool(task="required")
def form_in_task(ctx: Context) -> str:
    ctx.run_as_task()
    return ctx.elicit("q", "Who?", User).name


@server.tool(task="required")
async def form_beside_sleep(ctx: AsyncContext) -> None:
    await ctx.run_as_task()

    async def ask(branch: AsyncContext) -> None:
        await branch.elicit("q", "Who?", User)

    async def sleep(branch: AsyncContext) -> None:
        for number in range(3):
            await branch.sleep(f"nap {number}", 60_000)

    await ctx.gather({"a": ask, "b": sleep})


@server.tool(task="required")
def sampling_in_task(ctx: Context) -> str:
    ctx.run_as_task()
    return ctx.sample("q", "Summarize.", max_tokens=10).text


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


def test_answers_to_questions_that_the_call_does_not_ask_are_ignored_and_counted():
    play = Player(server)
    asked = play.call("form")
    unasked = {"name": SECRET, SECRET: None}
    for sent in (unasked, {**unasked, "q": GOOD["form"]}):
        played = asked.respond(sent)
    assert played.text == "ada"
    lines = [fields for event, fields in play.observer.events if event == "answers_ignored"]
    assert [line["count"] for line in lines] == [2, 2]
    assert SECRET not in str(lines)


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


def last_round(play, tool, answer):
    played = play.call(tool)
    while played.asked:
        played = played.respond({"q": answer})
    return played


def test_the_error_after_the_last_round_names_the_question_and_the_reason():
    play = Player(server)
    ended = last_round(play, "form", accepted({"name": SECRET * 3}))
    assert "'q'" in ended.text
    assert "16 characters" in ended.text
    assert SECRET not in ended.text
    assert len(refusals(play)) == 9


@changes_questions
def test_the_error_after_the_last_round_names_a_question_that_changes_in_every_round():
    changing, minutes = Server("asks"), count(1)

    @changing.tool
    def tool(ctx: Context) -> str:
        return ctx.elicit("q", f"It is {next(minutes)} past five in {SECRET}. Who?", str)

    play = Player(changing)
    ended = last_round(play, "tool", accepted({"value": "ada"}))
    assert "'q'" in ended.text
    assert "changed" in ended.text
    assert SECRET not in ended.text


@pytest.mark.parametrize(
    ("tool", "answer", "good"),
    [
        ("form_in_task", {"action": "Accept"}, accepted({"name": "ada"})),
        ("form_in_task", SECRET, accepted({"name": "ada"})),
        ("sampling_in_task", {**SAMPLED, "role": SECRET}, SAMPLED),
        ("sampling_in_task", {**SAMPLED, "model": "\ud83d"}, SAMPLED),
    ],
)
def test_tasks_update_refuses_a_malformed_answer_and_stores_nothing(tool, answer, good):
    play = Player(server, WITH_TASKS)
    task = play.call(tool).task
    refused = play.request("tasks/update", taskId=task.task_id, inputResponses={"q": answer})
    assert refused["error"]["code"] == -32602
    assert "inputResponses.q" in refused["error"]["message"]
    [line] = refusals(play)
    assert (line["task"], line["key"]) == (task.task_id, "q")
    assert SECRET not in str(line)
    assert task.poll().asked == task.asked
    assert task.respond({"q": good}).status == "completed"


def test_a_refused_form_of_a_task_is_logged_once_and_a_null_is_stored_as_absent():
    play = Player(server, WITH_TASKS)
    again = play.call("form_in_task").task.respond(responses(q={"name": SECRET}))
    assert "taken" in again.question("q")
    again.poll().poll()
    assert [line["key"] for line in refusals(play)] == ["q"]
    sampled = play.call("sampling_in_task").task.respond(
        {"q": {**SAMPLED, "stopReason": None, "_meta": None}}
    )
    assert sampled.status == "completed"


def test_a_refused_form_is_logged_once_while_another_branch_sleeps():
    play = Player(server, WITH_TASKS)
    task = play.call("form_beside_sleep").task.respond({"a/q": accepted({"name": SECRET})})
    for _ in range(3):
        task = task.wake()
    assert [line["key"] for line in refusals(play)] == ["a/q"]
    task = task.respond({"a/q~2": accepted({"name": SECRET})})
    assert len(refusals(play)) == 2
    assert task.respond({"a/q~3": accepted({"name": "ada"})}).status == "completed"


@pytest.mark.parametrize("client", ["codex", "claude.ai"])
def test_an_answer_from_the_page_or_the_app_that_the_tool_refuses_is_logged(client):
    play = Player(server, client=client)
    played = play.call("form", q={"name": SECRET})
    assert "taken" in str(played.asked or played.result)
    assert refusals(play)
    assert SECRET not in str(refusals(play))


def changing(server):
    passes = count(1)

    @server.tool
    def by_time(ctx: Context) -> bool:
        return ctx.elicit("sure", f"It is {next(passes)} o'clock in {SECRET}. Sure?", bool)

    @server.tool
    def by_field(ctx: Context) -> object:
        return ctx.elicit("size", "How large?", int if next(passes) % 2 else str)

    @server.tool(task="optional")
    async def later(ctx: AsyncContext) -> bool:
        await ctx.run_as_task()
        return await ctx.elicit("sure", f"It is {next(passes)} o'clock. Sure?", bool)

    @server.tool
    def one_of_two(ctx: Context) -> list[Any]:
        return list(ctx.ask(Elicit("name", "Who?", str), Elicit("sure", f"{next(passes)}?", bool)))

    @server.tool
    def steady(ctx: Context) -> list[Any]:
        return [ctx.elicit("size", "How large?", int), ctx.elicit("sure", "Sure?", bool)]

    return server


def changes(play):
    events = [fields for event, fields in play.observer.events if event == "question_changed"]
    assert all(fields["tool"] for fields in events)
    return [(fields["key"], fields["changed"]) for fields in events]


@changes_questions
@pytest.mark.parametrize(
    ("tool", "rounds", "logged"),
    [
        ("by_time", [{"sure": True}], [("sure", "message")]),
        ("by_field", [{}], [("size", "form (method or parameters)")]),
        ("one_of_two", [{"name": "Ann"}, {"sure": True}], [("sure", "message"), ("sure", "message")]),
        ("steady", [{"size": "many"}, {"size": 2}, {}, {"sure": True}], []),
    ],
)
def test_every_round_with_a_changed_question_is_logged_without_the_text(tool, rounds, logged):
    """An invalid answer and a new question are no changes."""
    play = Player(changing(Server("x")))
    asked = play.call(tool)
    assert changes(play) == []
    for answers in rounds:
        asked = asked.respond(responses(**answers))
    assert changes(play) == logged
    assert SECRET not in str(play.observer.events)


@changes_questions
def test_a_discarded_answer_is_logged():
    server, texts = Server("x"), iter(["10 EUR?", "10 EUR?", "11 EUR?"])

    @server.tool
    def buy(ctx: Context) -> list[Any]:
        return list(ctx.ask(Elicit("price", next(texts), bool), Elicit("name", "Who?", str)))

    play = Player(server)
    again = play.call("buy").respond(responses(price=True)).respond(responses(name="Ann"))
    assert again.question("price") == "11 EUR?"
    assert changes(play) == [("price", "message")]


@changes_questions
def test_a_changed_question_of_a_task_is_logged():
    play = Player(changing(Server("x")), WITH_TASKS)
    play.call("later").task.respond(responses(sure=True))
    assert ("sure", "message") in changes(play)
