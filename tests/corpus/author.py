"""Functions of an author. tests/messages has the mistakes that the layer names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from mcp_roundtrip import (
    AsyncContext,
    Audio,
    Call,
    Context,
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


def many_questions(ctx: Context, subject: str) -> int:
    return sum(len(ctx.elicit(f"q{number}", "What?", str)) for number in range(12))


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
    *(one_key_twice, swallowed_question, swallowed_failure, protocol_error, wrong_result, many_questions),
    *(branches, group, group_that_fails, group_that_cannot_ask, numbers),
    *(every_field, chosen_titles, blocks, embedded, supports, idempotent, notified),
)


def adds_fields(call: Call) -> Iterator[None]:
    call.add_fields(kind=call.kind, first=call.is_first_pass, task=call.task_id or "none")
    yield
    call.add_fields(outcome=str(call.outcome), error=str(call.error_type))


async def adds_fields_async(call: Call) -> AsyncIterator[None]:
    call.add_fields(method=call.method, left=call.remaining_ms)
    yield


def refuses(call: Call) -> Iterator[None]:
    raise ToolError(f"{call.name} is closed.")
    yield


def fails_after(call: Call) -> Iterator[None]:
    yield
    raise RuntimeError("secret-4711")


HOOKS: Final = (adds_fields, adds_fields_async, refuses, fails_after)


def text_and_bytes() -> list[ResourceContents]:
    """Return two contents."""
    return [ResourceContents("a", uri="play://x/a"), ResourceContents(blob=b"b", uri="play://x/b")]


def json_contents(ctx: Context) -> dict[str, Any]:
    """Return JSON."""
    return {"a": ctx.now("now").year}


def messages(ctx: Context, count: int = 1) -> list[PromptMessage]:
    """Return messages."""
    return [PromptMessage(Text(f"message {number}"), role="assistant") for number in range(count)]


def explode(path: str, q: str = "") -> str:
    """Return its variables."""
    return f"{path} {q}"
