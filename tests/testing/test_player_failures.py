"""Failure messages of the player when a test expects something else than what happened."""

import asyncio
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Elicit, NotAwaited, Server, ToolError
from mcp_roundtrip_testing import WITH_TASKS, CallFailed, PlayedTask, Player, Round

server = Server("failures")


def look_up(price: str) -> int:
    return int(price)


@server.tool
def raises(ctx: Context) -> int:
    return look_up("a lot")


@server.tool
def refuses(ctx: Context) -> int:
    raise ToolError("no item")


@server.tool
def asks(ctx: Context) -> str:
    return ctx.elicit("size", "How large?", str) + ctx.elicit("name", "Which name?", str)


@server.tool
def says(ctx: Context) -> str:
    return "hello"


class Size(BaseModel):
    vcpus: int
    tier: str = "small"


@server.tool
def sizes(ctx: Context) -> str:
    return ctx.elicit("name", "Which name?", str) + str(ctx.elicit("size", "How large?", Size))


@server.tool
def counts(ctx: Context) -> int:
    return ctx.elicit("number", "How many?", int)


@server.tool
def order(size: int) -> int:
    return size


@server.tool
def lists(ctx: Context) -> int:
    return len(ctx.list_roots())


@server.prompt
def greets() -> str:
    return "hello"


@server.tool
async def forgets(ctx: AsyncContext) -> str:
    return "yes" if ctx.elicit("sure", "Sure?", bool) else "no"


@server.tool(task="required")
def becomes_a_task(ctx: Context, error: str = "") -> int:
    ctx.run_as_task()
    if error:
        raise ToolError(error)
    ctx.elicit("keep", "Keep it?", bool)
    return look_up("a lot")


ANYTHING: dict[str, Callable[[Round], Any]] = {
    "structured": lambda played: played.structured,
    "text": lambda played: played.text,
    "error": lambda played: played.error,
    "question": lambda played: played.question("size"),
    "answer": lambda played: played.answer(size=4),
    "task": lambda played: played.task,
}


def shown(error: BaseException) -> str:
    """Return the chain of exceptions with tracebacks, as pytest shows it."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("expected", ANYTHING.values(), ids=ANYTHING.keys())
def test_the_exception_of_the_tool_is_the_cause_of_the_failure(expected):
    played = Player(server).call("raises")
    with pytest.raises(CallFailed, match="ValueError: invalid literal") as failure:
        expected(played)
    assert isinstance(failure.value.__cause__, ValueError)
    text = shown(failure.value)
    assert 'return look_up("a lot")' in text
    assert "return int(price)" in text
    assert text.index("ValueError") < text.index("CallFailed")


def test_pytest_shows_the_line_of_the_test_and_hides_the_player():
    with pytest.raises(CallFailed) as failure:
        Player(server).call("asks", seize=4)
    assert failure.traceback.filter(failure)[-1].path == Path(__file__)


def test_an_assertion_shows_the_position_of_a_call():
    raised = Player(server).call("raises")
    assert re.match("<Round: .*ValueError: ", repr(raised))
    assert re.fullmatch(f"<Round: .*{ASKS}>", repr(Player(server).call("asks")))
    assert re.match("<PlayedTask: .*ValueError: ", repr(failing_task()))
    unknown = Player(server, WITH_TASKS).task("unknown")
    assert re.match("<PlayedTask: tasks/get .*-32602", repr(unknown))


def failing_task() -> PlayedTask:
    return Player(server, WITH_TASKS).call("becomes_a_task").task.answer(keep=True)


@pytest.mark.parametrize(
    "expected", [lambda task: task.structured, lambda task: task.text, lambda task: task.error]
)
def test_the_exception_of_a_task_is_the_cause_of_the_failure(expected):
    with pytest.raises(CallFailed, match="ValueError: invalid literal") as failure:
        expected(failing_task())
    assert "return int(price)" in shown(failure.value)


def test_a_task_has_the_cause_of_its_failure():
    play = Player(server, WITH_TASKS)
    first, second = (play.call("becomes_a_task", {"error": text}).task for text in ("one", "two"))
    assert [str(task.raised) for task in (first, second)] == ["one", "two"]
    assert (first.text, second.text) == ("one", "two")


MEMBERS = "`.messages` .*prompt, `.contents` .*resource"
ASKS = r"'size' \('How large\?'\)"


@pytest.mark.parametrize(
    ("tool", "answers", "member", "message"),
    [
        ("asks", {"siez": "4"}, "text", "asked: size; .*: siez"),
        ("asks", {"size": "4", "nmae": "x"}, "text", "asked: size, name; .*: size, nmae"),
        ("says", {"size": "4"}, "text", "asked: nothing; .*: size"),
        ("becomes_a_task", {"keep": True}, "task", "became a task, .*`.task`"),
        ("order", {"error": "no"}, "text", ": error; .*arguments.size: Field required"),
        ("sizes", {"name": "x", "size": 4}, "text", "'size': .*vcpus, tier"),
        ("asks", {}, "structured", f"not ended: .*{ASKS}"),
        ("asks", {}, "text", f"not ended: .*{ASKS}"),
        ("says", {}, "error", "no JSON-RPC error: .*completed"),
        ("says", {}, "structured", "`.text`, or annotate"),
        ("says", {}, "messages", MEMBERS),
    ],
)
def test_the_failure_says_what_happened_instead(tool, answers, member, message):
    with pytest.raises(CallFailed, match=message):
        getattr(Player(server, WITH_TASKS).call(tool, **answers), member)


@pytest.mark.parametrize(
    ("tool", "member", "cause", "message"),
    [
        ("refuses", "structured", ToolError, "no item"),
        ("forgets", "text", NotAwaited, "question 'sure'"),
        ("unknown", "result", NoneType, "-32602"),
    ],
)
def test_the_failure_has_the_exception_of_the_tool_as_its_cause(tool, member, cause, message):
    with pytest.raises(CallFailed, match=message) as failure:
        getattr(Player(server).call(tool), member)
    assert type(failure.value.__cause__) is cause
    raised_here = 'raise ToolError("no item")' in shown(failure.value)
    assert raised_here is (tool == "refuses")


def test_a_tool_error_is_a_result_and_does_not_report_unused_answers():
    played = Player(server).call("refuses", size="4")
    assert (played.failed, played.text) == (True, "no item")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda play: play.call("asks").answer(siez="4"), "asked: size; .*: siez"),
        (lambda play: play.call("says").question("size"), "'size' .*hello"),
        (lambda play: play.call("lists").question("roots"), r"'roots' .*roots/list, .*`\.asked`"),
        (lambda play: play.call("becomes_a_task").task.answer(kep=True), "asked: keep; .*: kep"),
        (lambda play: play.call("becomes_a_task").task.respond({"keep": 5}), "tasks/update .*-32602"),
        (lambda play: play.call("becomes_a_task").task.structured, r"no result: .*'keep' \('Keep it\?'\)"),
        (lambda play: play.call("becomes_a_task").task.cancel().text, "no result: .*cancelled"),
    ],
)
def test_a_wrong_use_of_a_call_or_a_task_fails_with_its_keys_and_its_state(use, message):
    with pytest.raises(CallFailed, match=message):
        use(Player(server, WITH_TASKS))


@pytest.mark.parametrize("client", ["vscode", "cursor"])  # in an app, on the page
def test_what_a_released_client_shows_its_user_is_the_state_of_the_call(client):
    with pytest.raises(CallFailed, match=f": sise; .*{ASKS}"):
        Player(server, client=client).call("asks", sise="4")


@pytest.mark.parametrize("name", ["text", "structured", "contents"])
def test_a_member_of_another_kind_of_result_fails_with_those_of_each_kind(name):
    with pytest.raises(CallFailed, match=MEMBERS):
        getattr(Player(server).prompt("greets"), name)


def test_a_refused_answer_is_asked_again_under_its_key_in_an_app():
    asked = Player(server, client="vscode").call("counts", number="many")
    assert "not accepted" in asked.question("number")
    assert asked.answer(number=3).text == "3"


def test_an_answer_that_the_page_refuses_fails_with_the_words_of_the_page():
    with pytest.raises(CallFailed) as failure:
        Player(server, client="cursor").call("counts", number="many")
    assert "refused" in str(failure.value)
    assert "whole number" in str(failure.value)
    assert "<" not in str(failure.value)


def test_a_request_may_have_a_name_that_is_no_text():
    assert Player(server).request("resources/read", uri=5)["error"]["code"] == -32020


@pytest.mark.parametrize("capabilities", [{"samplin": {}}, {"sampling": {"tool": {}}}])
def test_a_capability_that_no_client_has_is_refused(capabilities):
    with pytest.raises(DefinitionError, match=r"'samplin.*elicitation\.form"):
        Player(server, capabilities)


def test_a_source_that_is_no_server_is_refused(tmp_path):
    (tmp_path / "app.py").touch()
    with pytest.raises(AssertionError, match=r"app\.py .*0 servers; .*front_door"):
        Player(tmp_path / "app.py").call("order")
    source: Any
    for source in ("functions/server/app.py", pytest):
        with pytest.raises(TypeError, match=r"a Server, .*Path"):
            Player(source).call("order")


def test_results_that_are_too_large_for_a_state_or_for_the_task_table_name_their_step():
    exports = Server("exports")

    @exports.tool
    def export(ctx: Context) -> bool:
        ctx.step("count", lambda: 70_000)
        ctx.step("rows", lambda: "x" * 70_000)
        return ctx.confirm("sure", "Export them?")

    @exports.tool(task="required")
    def export_later(ctx: Context) -> int:
        ctx.run_as_task()
        return len(ctx.step("rows", lambda: "x" * 500_000))

    with pytest.raises(CallFailed) as failure:
        assert Player(exports).call("export").text
    assert ": count, rows." in shown(failure.value)
    assert "step 'rows': 70002 characters" in shown(failure.value)
    with pytest.raises(CallFailed) as failure:
        assert Player(exports, WITH_TASKS).call("export_later").task.structured
    assert "result of 'rows'" in shown(failure.value)


def test_a_user_is_not_asked_for_shorter_answers_if_many_steps_or_questions_exceed_a_state():
    many = Server("many")

    @many.tool
    def steps(ctx: Context) -> bool:
        for n in range(2_500):
            ctx.step(str(n), lambda: None)
        return ctx.confirm("sure", "Sure?")

    @many.tool
    def questions(ctx: Context) -> int:
        return len(ctx.ask(*(Elicit(str(n), "Sure?", bool) for n in range(1_000))))

    @many.tool
    def answers(ctx: Context) -> int:
        return sum(len(ctx.ask(*(Elicit(f"{page}.{n}", "?", bool) for n in range(150)))) for page in range(9))

    given = {f"{page}.{n}": True for page in range(9) for n in range(150)}
    calls: list[tuple[str, dict[str, bool], str]] = [
        ("steps", {}, "2500 entries. Open questions: 1"),
        ("questions", {}, "0 entries. Open questions: 1000"),
        ("answers", given, " entries. Open questions: 150"),
    ]
    for tool, answered, size in calls:
        with pytest.raises(CallFailed) as failure:
            assert Player(many).call(tool, **answered).text
        assert size in shown(failure.value), tool


async def async_test() -> None:
    assert Player(server).call("forgets").text == "no"


def test_an_async_tool_in_an_async_test_fails_with_what_to_write():
    with pytest.raises(CallFailed, match=r"write `await asyncio\.to_thread\(play\.call"):
        asyncio.run(async_test())
