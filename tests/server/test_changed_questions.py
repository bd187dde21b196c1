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
    assert all(fields["tool"] for fields in events)
    return [(fields["key"], fields["changed"]) for fields in events]


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
    play.call("later").task.respond(responses(sure=True))
    assert ("sure", "message") in changes(play)
