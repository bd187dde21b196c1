"""Functions of an author: right ones, and every mistake that the layer names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from mcp_roundtrip import (
    AsyncContext,
    Audio,
    Call,
    Context,
    Elicit,
    ElicitationDeclined,
    EmbeddedResource,
    Image,
    PromptMessage,
    ProtocolError,
    ResourceContents,
    ResourceLink,
    Retry,
    StepFailed,
    Text,
    ToolError,
    one_of,
)


class Everything(BaseModel):
    """A form with a field of each kind."""

    text: str = Field(min_length=2, max_length=200)
    many: int = Field(ge=1, le=9)
    share: float = Field(default=0.5, gt=0, lt=1)
    sure: bool = False
    color: Literal["red", "blue"] = "red"
    day: date
    moment: datetime | None = None
    tags: list[Literal["a", "b", "c"]] = Field(default=["a"])
    long: Literal["1", "2", "3", "4", "5", "6", "7", "8", "9"] | None = None


def one_key_twice(ctx: Context, subject: str) -> None:
    ctx.step("a", lambda: 1)
    ctx.step("a", lambda: 2)


def reserved_key(ctx: Context, subject: str) -> None:
    ctx.step("a~b", lambda: 1)


def step_in_a_step(ctx: Context, subject: str) -> None:
    ctx.step("a", lambda: ctx.step("b", lambda: 1))


def question_in_a_step(ctx: Context, subject: str) -> None:
    ctx.step("a", lambda: ctx.confirm("b", "Sure?"))


def step_without_json(ctx: Context, subject: str) -> None:
    ctx.step("a", lambda: object())


def step_of_another_type(ctx: Context, subject: str) -> Any:
    def count() -> int:
        return "many"  # type: ignore[return-value]

    return ctx.step("a", count)


def nested_form(ctx: Context, subject: str) -> Any:
    class Inner(BaseModel):
        x: int

    class Outer(BaseModel):
        inner: Inner

    return ctx.elicit("a", "How?", Outer)


def wrong_default(ctx: Context, subject: str) -> Any:
    return ctx.elicit("a", "How many?", int, default="many")


def relative_url(ctx: Context, subject: str) -> None:
    ctx.elicit_url("a", "Go", "/pay", done=lambda: True)


def swallowed_question(ctx: Context, subject: str) -> str:
    try:
        return str(ctx.elicit("a", "What?", str))
    except ElicitationDeclined as declined:
        return f"declined {declined.key}"


def swallowed_failure(ctx: Context, subject: str) -> str:
    def fails() -> None:
        raise ConnectionError("secret-4711")

    try:
        ctx.step("a", fails, retry=Retry(attempts=2, delay_ms=100))
    except StepFailed as failed:
        return str(failed)
    return "never"


def protocol_error(ctx: Context, subject: str) -> None:
    raise ProtocolError(-32099, "Own", {"a": 1})


def wrong_result(ctx: Context, subject: str) -> dict[str, int]:
    return {"a": "secret-4711"}  # type: ignore[dict-item]


def unknown_log_level(ctx: Context, subject: str) -> None:
    ctx.log("loud", "x")


def many_questions(ctx: Context, subject: str) -> int:
    return sum(len(ctx.elicit(f"q{number}", "What?", str)) for number in range(12))


def asks_what_depends_on_chance(ctx: Context, subject: str) -> str:
    at_least_one: Any = Annotated[int, Field(ge=1)]
    answers = ctx.ask(Elicit("a", "First", str), Elicit("b", "Second", at_least_one))
    return "".join(map(str, answers))


async def not_awaited(ctx: AsyncContext, subject: str) -> str:
    ctx.elicit("a", "What?", str)  # type: ignore[unused-coroutine]
    return "done"


async def tested_before_awaited(ctx: AsyncContext, subject: str) -> str:
    return "yes" if ctx.confirm("a", "Sure?") else "no"  # type: ignore[truthy-bool]


async def step_before_an_answer(ctx: AsyncContext, subject: str) -> str:
    sure = ctx.confirm("sure", "Sure?")
    charged = await ctx.step("charge", lambda: subject)
    return f"{charged} {await sure}"


async def step_on_an_answer(ctx: AsyncContext, subject: str) -> str:
    return await ctx.step("charge", str, ctx.elicit("a", "What?", str))


async def step_beside_an_answer(ctx: AsyncContext, subject: str) -> str:
    sure = asyncio.create_task(ctx.confirm("sure", "Sure?"))
    charged = await ctx.step("charge", lambda: subject)
    return f"{charged} {await sure}"


async def branches(ctx: AsyncContext, subject: str) -> dict[str, str]:
    async def work(branch: AsyncContext) -> str:
        step = await branch.step("charge", lambda: subject)
        return f"{step} {await branch.elicit('color', 'Which?', Literal['red', 'blue'])}"

    return await ctx.gather({"left": work, "right": work})


async def group(ctx: AsyncContext, subject: str) -> str:
    async def work(name: str) -> str:
        branch = ctx.branch(name)
        await asyncio.sleep(1)
        return str(await branch.elicit("color", "Which?", Literal["red", "blue"]))

    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(work(name)) for name in ("one", "two")]
    return ", ".join(each.result() for each in made)


async def group_that_fails(ctx: AsyncContext, subject: str) -> None:
    async def fails() -> None:
        raise ToolError("One branch has failed.")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fails())
        tasks.create_task(ctx.branch("other").confirm("sure", "Sure?"))


async def group_that_cannot_ask(ctx: AsyncContext, subject: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ctx.branch("one").sample("text", "Write.", max_tokens=10))
        tasks.create_task(ctx.branch("other").confirm("sure", "Sure?"))


def numbers(ctx: Context, subject: str) -> list[int]:
    return [1, 2]


async def async_step(ctx: AsyncContext, subject: str) -> str:
    async def effect() -> str:
        await asyncio.sleep(2)
        return "done"

    return str(await ctx.step("a", effect, retry=Retry(attempts=2)))


async def same_key_in_two_branches(ctx: AsyncContext, subject: str) -> None:
    async def work(_: AsyncContext) -> str:
        return await ctx.step("a", lambda: subject)

    await ctx.gather({"left": work, "right": work})


async def task_in_a_branch(ctx: AsyncContext, subject: str) -> None:
    async def work(branch: AsyncContext) -> None:
        await branch.run_as_task()

    await ctx.gather({"left": work})


def every_field(ctx: Context, subject: str) -> str:
    return str(ctx.elicit("all", "Everything?", Everything))


def chosen_titles(ctx: Context, subject: str) -> Any:
    return ctx.elicit("a", "Which?", one_of({"r": "Red", "b": "Blue"}))


def blocks(ctx: Context, subject: str) -> list[Text | Image | Audio | ResourceLink]:
    link = ResourceLink(uri="docs://guide", name="guide")
    return [Text("Hello"), Image(b"\x89PNG", "image/png"), Audio(b"\0", "audio/wav"), link]


def embedded(ctx: Context, subject: str) -> EmbeddedResource:
    return EmbeddedResource("docs://guide", text="# Guide")


def supports(ctx: Context, subject: str) -> dict[str, Any]:
    names = (
        "elicitation",
        "elicitation.url",
        "sampling",
        "sampling.tools",
        "roots",
        "extensions.com.example/a",
    )
    principal = None if ctx.principal is None else ctx.principal.subject
    return {**{name: ctx.supports(name) for name in names}, "principal": principal, "client": ctx.client}


def idempotent(ctx: Context, subject: str) -> str:
    key = ctx.idempotency_key("charge")
    ctx.confirm("sure", "Sure?")
    return "same" if key == ctx.idempotency_key("charge") else "another"


def notified(ctx: Context, subject: str) -> str:
    for number in range(3):
        ctx.progress(number, 3, f"step {number}")
        ctx.log("debug" if number else "error", {"number": number}, logger="corpus")
        ctx.step(f"s{number}", lambda: 1)
    return "done"


FUNCTIONS: Final = (
    *(one_key_twice, reserved_key, step_in_a_step, question_in_a_step),
    *(step_without_json, step_of_another_type),
    *(nested_form, wrong_default, relative_url, swallowed_question, swallowed_failure, protocol_error),
    *(wrong_result, unknown_log_level, many_questions, asks_what_depends_on_chance, not_awaited),
    *(step_before_an_answer, step_on_an_answer, step_beside_an_answer),
    *(tested_before_awaited, branches, group, group_that_fails, group_that_cannot_ask, numbers, async_step),
    *(same_key_in_two_branches, task_in_a_branch),
    *(every_field, chosen_titles, blocks, embedded, supports, idempotent, notified),
)


def told(call: Call) -> Iterator[None]:
    call.add_fields(kind=call.kind, first=call.is_first_pass, task=call.task_id or "none")
    yield
    call.add_fields(outcome=str(call.outcome), error=str(call.error_type))


async def told_async(call: Call) -> AsyncIterator[None]:
    call.add_fields(method=call.method, left=call.remaining_ms)
    yield


def refuses(call: Call) -> Iterator[None]:
    raise ToolError(f"{call.name} is closed.")
    yield


def fails_after(call: Call) -> Iterator[None]:
    yield
    raise RuntimeError("secret-4711")


def yields_twice(call: Call) -> Iterator[None]:
    yield
    yield


def adds_too_much(call: Call) -> Iterator[None]:
    call.add_fields(**{f"field_{number}": "x" * 300 for number in range(20)})
    yield


HOOKS: Final = (told, told_async, refuses, fails_after, yields_twice, adds_too_much)


def text_and_bytes() -> list[ResourceContents]:
    """Return two contents."""
    return [ResourceContents("a", uri="play://x/a"), ResourceContents(blob=b"b", uri="play://x/b")]


def json_contents(ctx: Context) -> dict[str, Any]:
    """Return JSON."""
    return {"a": ctx.now("now").year}


def messages(ctx: Context, count: int = 1) -> list[PromptMessage]:
    """Return messages."""
    return [PromptMessage(Text(f"message {number}"), role="assistant") for number in range(count)]


def wrong_messages() -> Any:
    """Return a number."""
    return 7


def failing_resource(ctx: Context) -> str:
    """Raise."""
    raise RuntimeError("secret-4711")


def explode(path: str, q: str = "") -> str:
    """Return its variables."""
    return f"{path} {q}"
