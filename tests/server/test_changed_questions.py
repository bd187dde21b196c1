"""A question whose text changes between rounds is logged by its key, without its text."""

from itertools import count
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip_testing import WITH_TASKS, Player
from support.client_requests import responses

pytestmark = pytest.mark.filterwarnings("ignore::mcp_roundtrip_testing.QuestionChanged")  # intended

SECRET = "4711 Hidden Lane"


def changing(server):
    """Return a server whose questions change from pass to pass."""
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
    return [(fields["key"], fields["changed"]) for fields in events]


def test_a_changed_text_is_logged_without_the_text():
    play = Player(changing(Server("x")))
    asked = play.call("by_time")
    assert changes(play) == []
    assert "sure" in asked.respond(responses(sure=True)).asked
    assert changes(play) == [("sure", "message")]
    assert SECRET not in str(play.observer.events)
    [fields] = [fields for event, fields in play.observer.events if event == "question_changed"]
    assert fields["tool"] == "by_time"


def test_a_changed_form_is_logged_even_without_an_answer():
    play = Player(changing(Server("x")))
    play.call("by_field").respond({})
    assert changes(play) == [("size", "form (method or parameters)")]


def test_every_round_with_a_changed_question_is_logged():
    play = Player(changing(Server("x")))
    play.call("one_of_two").respond(responses(name="Ann")).respond(responses(sure=True))
    assert changes(play) == [("sure", "message"), ("sure", "message")]


def test_a_discarded_answer_is_logged():
    server, texts = Server("x"), iter(["10 EUR?", "10 EUR?", "11 EUR?"])

    @server.tool
    def buy(ctx: Context) -> list[Any]:
        return list(ctx.ask(Elicit("price", next(texts), bool), Elicit("name", "Who?", str)))

    play = Player(server)
    again = play.call("buy").respond(responses(price=True)).respond(responses(name="Ann"))
    assert again.question("price") == "11 EUR?"
    assert changes(play) == [("price", "message")]


def test_a_changed_question_of_a_task_is_logged():
    play = Player(changing(Server("x")), WITH_TASKS)
    task = play.call("later").task
    task.respond(responses(sure=True))
    assert ("sure", "message") in changes(play)


def test_invalid_answers_and_new_questions_are_not_logged_as_changes():
    play = Player(changing(Server("x")))
    again = play.call("steady").respond(responses(size="many"))
    assert "not accepted" in again.question("size")
    again.respond(responses(size=2)).respond({}).respond(responses(sure=True))
    assert changes(play) == []
