from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, SecretStr, field_serializer

from mcp_roundtrip import (
    AsyncContext,
    Context,
    DefinitionError,
    Drift,
    DuplicateKey,
    ElicitUrl,
    InvalidKey,
    Retry,
    Sample,
    Server,
    UsageError,
)
from mcp_roundtrip.engine.async_pass import run_async_pass
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.step_values import UNRESOLVED, round_trip
from mcp_roundtrip.s3 import MAX_BYTES, Bucket, Stored
from mcp_roundtrip_testing import WITH_TASKS, Player
from mcp_roundtrip_testing.ports import make_ports
from messages.cases import mistake, mistakes, run, run_async
from support.passes import Passes, TaskJournal, error


class Connection:
    """No type that JSON has a form for."""


class Address(BaseModel):
    street: str


class Order(BaseModel):
    address: Address


class Free(BaseModel):
    names: list[str]


class Either(BaseModel):
    amount: int | str


class Numbers(BaseModel):
    size: Literal[1, 2]


class Secret(BaseModel):
    password: SecretStr


class Anything(BaseModel):
    value: dict[str, Any] | None


def pay(amount: int = 1) -> str:
    return f"paid {amount}"


async def pay_later() -> str:
    return "paid"


def infinite_ratio() -> list[float]:
    return [1.0, float("inf")]


def iterable_rows() -> Iterable[int]:
    return [1]


def use_a_context_twice() -> None:
    kept: list[Any] = []
    Passes(lambda ctx: kept.append(ctx))()
    run(lambda ctx: kept[0].step("pay", pay))


async def play_in_an_async_test() -> None:
    raise error(run_async_pass(pay_later, {}, Passes(print).make_run(), {}))


class Priced(BaseModel):
    euros: int

    @field_serializer("euros")
    def written(self, value: int) -> str:
        return f"{value} EUR"


@mistake(Drift)
def a_key_that_names_something_else_now() -> None:
    playing = Passes(lambda ctx: (ctx.step("pay", pay), ctx.elicit("sure", "Sure?", bool))).begun()
    playing.on(lambda ctx: ctx.now("pay"))()
    raise error(playing.on(lambda ctx: ctx.now("pay"))())


@mistake(Drift)
def a_task_whose_tool_is_gone() -> None:
    def build(name: str) -> Server:
        built = Server("shop")

        @built.tool(name, task="required")
        def order(ctx: Context) -> None:
            ctx.run_as_task()
            ctx.elicit("sure", "Sure?", bool)

        return built

    builds = [build("order"), build("buy")]
    playing = Player(lambda: builds[0], WITH_TASKS)
    task = playing.call("order").task
    builds.pop(0)
    task.answer(sure=True)
    raise playing.observer.failures[-1][1]


def ask(model: Any, **given: Any) -> None:
    run(lambda ctx: ctx.elicit("order", "What?", model, **given))


@mistake(UsageError)
def an_async_done_in_a_tool_that_is_not() -> None:
    async def done() -> bool:
        return True

    run(
        lambda ctx: ctx.elicit_url("pay", "Pay here.", "https://example.com/pay", done=done),
        {"pay": {"action": "accept"}},
    )


@mistake()
def a_form_without_fields() -> None:
    class Text(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            return {"type": "string"}

    ask(Text)


LINKS = make_ports().links()


@mistake(UsageError)
def a_done_that_uses_the_context() -> None:
    url = "https://example.com/pay"
    accepted = {"pay": {"action": "accept"}}
    run(lambda ctx: ctx.elicit_url("pay", "Pay.", url, done=lambda: ctx.step("look", bool)), accepted)


@mistake(UsageError)
def a_step_whose_return_type_has_no_form_in_json() -> None:
    def connect() -> Connection:
        return Connection()

    run(lambda ctx: ctx.step("connect", connect))


@mistake(UsageError)
def a_step_that_returns_another_type() -> None:
    def count() -> int:
        return "two"

    run(lambda ctx: ctx.step("count", count))


@mistake(UsageError)
def a_step_whose_value_becomes_another_one() -> None:
    def read() -> str | bytes:
        return b"a"

    run(lambda ctx: ctx.step("read", read))


@mistake(UsageError)
def a_step_whose_json_is_not_that_of_its_type() -> None:
    def bill() -> Priced:
        return Priced(euros=1)

    run(lambda ctx: ctx.step("bill", bill))


@mistake(UsageError)
def a_step_that_returns_a_value_that_is_nested_too_deep() -> None:
    def nested() -> list[Any]:
        found: list[Any] = []
        for _ in range(200):
            found = [found]
        return found

    run(lambda ctx: ctx.step("nest", nested))


@mistake(UsageError)
def a_task_in_a_branch() -> None:
    async def body(ctx: AsyncContext) -> None:
        await ctx.branch("eu").run_as_task()

    run_async(body)


class Endless(io.RawIOBase):
    """A file of more bytes than an upload takes."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return MAX_BYTES + 1


LINK_OF_VERSION_2 = "https://exports.example/key?Signature=x"
CLIENT: Any = SimpleNamespace(generate_presigned_url=lambda *_, **__: LINK_OF_VERSION_2)
STORED = Stored("key", "orders.csv", "text/csv", 3)
BUCKET = Bucket("exports", client=CLIENT)


mistakes(
    __name__,
    InvalidKey,
    {
        "a key with a slash": lambda: run(lambda ctx: ctx.step("pay/1", pay)),
        "a key that is a number": lambda: run(lambda ctx: ctx.elicit(7, "How many?", int)),
        "a key that is too long": lambda: run(lambda ctx: ctx.step("x" * 901, pay)),
    },
)


mistakes(
    __name__,
    DuplicateKey,
    {"a key twice": lambda: run(lambda ctx: [ctx.step("pay", pay, amount) for amount in (1, 2)])},
)


mistakes(
    __name__,
    DefinitionError,
    {
        "a message that is no text": lambda: run(lambda ctx: ctx.elicit("order", 1, str)),
        "a form of no type": lambda: ask(42),
        "a form of a list of choices": lambda: ask(["red", "blue"]),
        "a form of a json schema": lambda: ask({"type": "string"}),
        "a form of an instance": lambda: ask(Address(street="a")),
        "a form with a type that json has no form for": lambda: ask(Connection),
        "a nested form": lambda: ask(Order),
        "a form with a list of nested models": lambda: ask(list[Address]),
        "a form with a list of free text": lambda: ask(Free),
        "a form with a union": lambda: ask(Either),
        "a form with choices that are numbers": lambda: ask(Numbers),
        "a form for a secret": lambda: ask(Secret),
        "a form with anything": lambda: ask(Anything),
        "a default of another type": lambda: ask(int, default="2"),
        "a capability that no client has": lambda: run(lambda ctx: ctx.supports("elicit")),
        "a text as the default of sampling": lambda: Sample("text", "hi", 10, default="nothing"),
        "a parameter of sampling in snake case": lambda: Sample(
            "poem", "Write a poem.", 50, {"system_prompt": "You are a poet."}
        ),
        "a url without a scheme": lambda: ElicitUrl("pay", "Pay here.", "example.com/pay", lambda: True),
        "a page that is done already": lambda: ElicitUrl("pay", "Pay here.", "https://example.com/pay", True),
        "a page that is looked at too often": lambda: ElicitUrl(
            "pay", "Pay here.", "https://example.com/pay", lambda: True, poll_interval_ms=1
        ),
        "a namespaced request without a domain": lambda: run(
            lambda ctx: ctx.request("approval", "approval"), info=CallInfo(namespaced_requests=True)
        ),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "a value that is not a question": lambda: run(lambda ctx: ctx.ask("How many?")),
        "a namespaced request of a server that makes none": lambda: run(
            lambda ctx: ctx.request("approval", "com.example/approval")
        ),
        "a namespaced request in a task": lambda: run(
            lambda ctx: ctx.request("approval", "com.example/approval"),
            recorder=TaskJournal(),
            info=CallInfo(namespaced_requests=True),
        ),
        "a link for an anonymous caller": lambda: LINKS.sign(None, "pay", "flow", 2_000_000_000),
        "a link that has expired": lambda: LINKS.sign("alice", "pay", "flow", 0),
        "a signed link that is too long": lambda: LINKS.sign("alice", "x" * 4_000, "flow", 2_000_000_000),
        "a step that is no function": lambda: run(lambda ctx: ctx.step("pay", 42)),
        "a step that was called already": lambda: run(lambda ctx: ctx.step("pay", pay(1))),
        "branches as a list": lambda: run_async(lambda ctx: ctx.gather([pay_later])),
        "branches that were called": lambda: run_async(lambda ctx: ctx.gather({"a": ctx.uuid("id")})),
        "an async step in a tool that is not": lambda: run(lambda ctx: ctx.step("pay", pay_later)),
        "a step that returns a coroutine": lambda: run(lambda ctx: ctx.step("pay", lambda: pay_later())),
        "a step inside a step": lambda: run(lambda ctx: ctx.step("outer", lambda: ctx.step("inner", pay))),
        "a step that returns a datetime without saying so": lambda: run(
            lambda ctx: ctx.step("when", lambda: datetime(2026, 7, 28, tzinfo=UTC))
        ),
        "a step that returns a generator": lambda: run(
            lambda ctx: ctx.step("rows", lambda: (each for each in "ab"))
        ),
        "a step that returns what json cannot hold": lambda: run(
            lambda ctx: ctx.step("connect", lambda: {"connection": Connection()})
        ),
        "a step that returns no finite number": lambda: run(lambda ctx: ctx.step("ratio", infinite_ratio)),
        "a step that returns an iterable": lambda: run(lambda ctx: ctx.step("rows", iterable_rows)),
        "a step that returns two keys with one name": lambda: run(
            lambda ctx: ctx.step("count", lambda: {1: "a", "1": "b"})
        ),
        "a value whose type has no form in json": lambda: round_trip(Connection(), Connection),
        "a value whose type only checkers know": lambda: round_trip([datetime(2026, 7, 1)], UNRESOLVED),
        "a step whose retry is a number": lambda: run(lambda ctx: ctx.step("pay", pay, retry=3)),
        "a step that runs at most once and again": lambda: run(
            lambda ctx: ctx.step("pay", pay, at_most_once=True, retry=Retry())
        ),
        "a step that runs at most once outside a task": lambda: run(
            lambda ctx: ctx.step("pay", pay, at_most_once=True)
        ),
        "a context that is kept after its round": use_a_context_twice,
        "an async tool in an async test": lambda: asyncio.run(play_in_an_async_test()),
        "no attempts": lambda: Retry(attempts=0),
        "retries on a list of exceptions": lambda: Retry(on=[ConnectionError]),
        "a task in a tool without one": lambda: run(lambda ctx: ctx.run_as_task()),
        "a task with a lifetime of zero": lambda: run(lambda ctx: ctx.run_as_task(ttl_ms=0)),
        "a sleep outside a task": lambda: run(lambda ctx: ctx.sleep("wait", 1_000)),
        "a sleep whose duration is text": lambda: run(
            lambda ctx: ctx.sleep("wait", "1 h"), recorder=TaskJournal()
        ),
        "a level that does not exist": lambda: run(lambda ctx: ctx.log("loud", "a")),
        "log data that json cannot hold": lambda: run(lambda ctx: ctx.log("info", Connection())),
        "progress that is no number": lambda: run(lambda ctx: ctx.progress("half")),
        "an object without a name": lambda: BUCKET.put(b"", ""),
        "an object of no type": lambda: BUCKET.put(b"", "orders.csv", "csv"),
        "an object of text": lambda: BUCKET.put("a,b", "orders.csv"),
        "an object of neither bytes nor a file": lambda: BUCKET.put(iter([b"a"]), "orders.csv"),
        "an object beyond an upload": lambda: BUCKET.put(Endless(), "orders.csv"),
        "a link to an object with too long a lifetime": lambda: BUCKET.link(STORED, ttl_ms=10**12),
        "a link that is signed with version 2": lambda: BUCKET.link(STORED),
    },
)
