"""What tools do with their context: questions, steps, tasks, reports."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, SecretStr, field_serializer

from mcp_roundtrip import (
    AsyncContext,
    DefinitionError,
    Drift,
    DuplicateKey,
    ElicitUrl,
    InvalidKey,
    Retry,
    Sample,
    UsageError,
)
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.step_values import round_trip
from mcp_roundtrip.s3 import MAX_BYTES, Bucket, Stored
from mcp_roundtrip_testing.ports import make_ports
from messages.cases import mistakes, run, run_async, says
from support.passes import Passes, TaskJournal


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


class Priced(BaseModel):
    euros: int

    @field_serializer("euros")
    def written(self, value: int) -> str:
        return f"{value} EUR"


@says("'pay': is recorded as step, and the code uses it as now", Drift)
def a_key_that_names_something_else_now() -> None:
    playing = Passes(lambda ctx: (ctx.step("pay", pay), ctx.elicit("sure", "Sure?", bool))).begun()
    playing.on(lambda ctx: ctx.now("pay"))()
    raise _failure(playing.on(lambda ctx: ctx.now("pay")))


def _failure(playing: Passes) -> BaseException:
    from support.passes import error

    return error(playing())


def ask(model: Any, **given: Any) -> None:
    run(lambda ctx: ctx.elicit("order", "What?", model, **given))


@says(
    "question 'pay': done= is async in a tool that is not; write `def` for done, or `async def` for the tool",
    UsageError,
)
def an_async_done_in_a_tool_that_is_not() -> None:
    async def done() -> bool:
        return True

    run(
        lambda ctx: ctx.elicit_url("pay", "Pay here.", "https://example.com/pay", done=done),
        {"pay": {"action": "accept"}},
    )


@says("question 'order': form Text: it has no fields; write a flat pydantic model or dataclass")
def a_form_without_fields() -> None:
    class Text(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            return {"type": "string"}

    ask(Text)


LINKS = make_ports().links()


@says(
    "question 'pay' uses the context inside its function; call the context before it, and pass what the "
    "function needs",
    UsageError,
)
def a_done_that_uses_the_context() -> None:
    url = "https://example.com/pay"
    accepted = {"pay": {"action": "accept"}}
    run(lambda ctx: ctx.elicit_url("pay", "Pay.", url, done=lambda: ctx.step("look", bool)), accepted)


@says(
    "step 'connect' cannot have its return type: Connection cannot be written as JSON; use a type "
    "such as str, int, bool, datetime, list[str], a dataclass or a pydantic model",
    UsageError,
)
def a_step_whose_return_type_has_no_form_in_json() -> None:
    def connect() -> Connection:
        return Connection()

    run(lambda ctx: ctx.step("connect", connect))


@says(
    "step 'count' returned str, which does not fit its return type int; return what the annotation "
    "says, or change it",
    UsageError,
)
def a_step_that_returns_another_type() -> None:
    def count() -> int:
        return "two"

    run(lambda ctx: ctx.step("count", count))


@says(
    "step 'read' returned bytes, which cannot be read back from JSON as str | bytes: it becomes str; use a "
    "type that JSON tells apart, or return JSON data",
    UsageError,
)
def a_step_whose_value_becomes_another_one() -> None:
    def read() -> str | bytes:
        return b"a"

    run(lambda ctx: ctx.step("read", read))


@says(
    "step 'bill' returned Priced, which cannot be read back from JSON as Priced: result.euros: Input should "
    "be a valid integer, unable to parse string as an integer; use a type that JSON tells apart, or return "
    "JSON data",
    UsageError,
)
def a_step_whose_json_is_not_that_of_its_type() -> None:
    def bill() -> Priced:
        return Priced(euros=1)

    run(lambda ctx: ctx.step("bill", bill))


@says("step 'nest' returned a value nested deeper than 64 levels; return a flatter one", UsageError)
def a_step_that_returns_a_value_that_is_nested_too_deep() -> None:
    def nested() -> list[Any]:
        found: list[Any] = []
        for _ in range(200):
            found = [found]
        return found

    run(lambda ctx: ctx.step("nest", nested))


@says("run_as_task is called in the branch 'eu'; call it before the branches begin", UsageError)
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


class Unsigned:
    """An S3 client that signs with version 2."""

    def generate_presigned_url(self, *given: Any, **named: Any) -> str:
        return "https://exports.example/key?Signature=x"


CLIENT: Any = Unsigned()
BUCKET = Bucket("exports", client=CLIENT)


mistakes(
    __name__,
    InvalidKey,
    {
        "a key with a slash": (
            lambda: run(lambda ctx: ctx.step("pay/1", pay)),
            "key 'pay/1' is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of "
            "1 to 900 bytes with the names of its branches",
        ),
        "a key that is a number": (
            lambda: run(lambda ctx: ctx.elicit(7, "How many?", int)),
            "key 7 is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of 1 to "
            "900 bytes with the names of its branches",
        ),
        "a key that is too long": (
            lambda: run(lambda ctx: ctx.step("x" * 901, pay)),
            f"key '{'x' * 199} "
            "is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of 1 to 900 "
            "bytes with the names of its branches",
        ),
    },
)


mistakes(
    __name__,
    DuplicateKey,
    {
        "a key twice": (
            lambda: run(lambda ctx: [ctx.step("pay", pay, amount) for amount in (1, 2)]),
            "key 'pay' is used twice in this call; give each question and step a key of its own, in a loop "
            "with the item in it, as in f'pay-{item.id}'",
        ),
    },
)


mistakes(
    __name__,
    DefinitionError,
    {
        "a message that is no text": (
            lambda: run(lambda ctx: ctx.elicit("order", 1, str)),
            "question 'order': the message is int; pass a str",
        ),
        "a form of no type": (
            lambda: ask(42),
            "question 'order': the model is a value of type int; pass a flat pydantic model, or a type such "
            "as str, bool or Literal",
        ),
        "a form of a list of choices": (
            lambda: ask(["red", "blue"]),
            "question 'order': the model is a value of type list; pass one_of(names) for a choice of texts, "
            "or Literal['a', 'b']",
        ),
        "a form of a json schema": (
            lambda: ask({"type": "string"}),
            "question 'order': the model is a value of type dict; write a flat pydantic model, or pass "
            "one_of(names) for a choice",
        ),
        "a form of an instance": (
            lambda: ask(Address(street="a")),
            "question 'order': the model is an instance of Address; pass the class Address",
        ),
        "a form with a type that json has no form for": (
            lambda: ask(Connection),
            "question 'order': form Connection: Connection cannot be written as JSON; use a type such as "
            "str, int, bool, datetime, list[str], a dataclass or a pydantic model",
        ),
        "a nested form": (
            lambda: ask(Order),
            "question 'order': form Order: field 'address' is a nested object, and a form is flat; put its "
            "fields into the model itself",
        ),
        "a form with a list of nested models": (
            lambda: ask(list[Address]),
            "question 'order': form list: field 'value' is a list of objects, and a form is flat; use a flat "
            "model, and ask for one after the other",
        ),
        "a form with a list of free text": (
            lambda: ask(Free),
            "question 'order': form Free: field 'names' is a list of free values, and a form needs choices; "
            "use list[Literal['a', 'b']] or list[one_of(names)], or ask for a str and split it",
        ),
        "a form with a union": (
            lambda: ask(Either),
            "question 'order': form Either: field 'amount' is a union, and a field of a form has one type; "
            "use one type, or a field for each",
        ),
        "a form with choices that are numbers": (
            lambda: ask(Numbers),
            "question 'order': form Numbers: field 'size' has choices that are not strings; use Literal['1', "
            "'2'] or an Enum of strings",
        ),
        "a form for a secret": (
            lambda: ask(Secret),
            "question 'order': form Secret: field 'password' is a secret, and a form must not ask for one; "
            "use ctx.elicit_url",
        ),
        "a form with anything": (
            lambda: ask(Anything),
            "question 'order': form Anything: field 'value' is a dict, and a form has fixed fields; write a "
            "field of the model for each entry",
        ),
        "a default of another type": (
            lambda: ask(int, default="2"),
            "question 'order': default= is str, and the answer is int; pass a value of that type, or None",
        ),
        "a parameter of sampling in snake case": (
            lambda: Sample("poem", "Write a poem.", 50, {"system_prompt": "You are a poet."}),
            "question 'poem': Object contains unknown field `system_prompt`; write "
            "CreateMessageRequestParams of the MCP schema, in camelCase",
        ),
        "a url without a scheme": (
            lambda: ElicitUrl("pay", "Pay here.", "example.com/pay", lambda: True),
            "question 'pay': 'example.com/pay' is not an absolute URL; write one such as "
            "'https://example.com/pay'",
        ),
        "a page that is done already": (
            lambda: ElicitUrl("pay", "Pay here.", "https://example.com/pay", True),
            "question 'pay': done= is bool; pass a function without parameters, such as `done=lambda: "
            "is_paid(order)`",
        ),
        "a page that is looked at too often": (
            lambda: ElicitUrl(
                "pay", "Pay here.", "https://example.com/pay", lambda: True, poll_interval_ms=1
            ),
            "question 'pay': poll_interval_ms=1 is not an int of at least 1000; pass one, or None to call "
            "done() once in each round",
        ),
        "a namespaced request without a domain": (
            lambda: run(
                lambda ctx: ctx.request("approval", "approval"), info=CallInfo(namespaced_requests=True)
            ),
            "namespaced request 'approval': 'approval' is not a name in your own domain; write one such as "
            "'com.example/approval'",
        ),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "a value that is not a question": (
            lambda: run(lambda ctx: ctx.ask("How many?")),
            "ask takes questions, not str; pass Elicit(key, message, model), ElicitUrl(...), Sample(...) or "
            "ListRoots()",
        ),
        "a namespaced request of a server that makes none": (
            lambda: run(lambda ctx: ctx.request("approval", "com.example/approval")),
            "namespaced request 'approval' is made by a server that does not allow them; write Server(..., "
            "namespaced_requests=True)",
        ),
        "a namespaced request in a task": (
            lambda: run(lambda ctx: ctx.request("approval", "com.example/approval"), recorder=TaskJournal()),
            "namespaced request 'approval' is made in a task, which cannot send it; call it before "
            "ctx.run_as_task()",
        ),
        "a link for an anonymous caller": (
            lambda: LINKS.sign(None, "pay", "flow", 2_000_000_000),
            "a signed link is bound to one user, and this caller is anonymous; check ctx.principal first, or "
            "have callers authenticated (MCP_AUTH_MODE)",
        ),
        "a link that has expired": (
            lambda: LINKS.sign("alice", "pay", "flow", 0),
            "a signed link would have expired already; use ttl_ms of at least 1000",
        ),
        "a signed link that is too long": (
            lambda: LINKS.sign("alice", "x" * 4_000, "flow", 2_000_000_000),
            "a signed link has at most 4096 characters, not 5780; use a shorter key",
        ),
        "a step that is no function": (
            lambda: run(lambda ctx: ctx.step("pay", 42)),
            "step 'pay' takes a function, not int; pass the function and its arguments without calling it, "
            "as in `ctx.step('pay', function, argument)`",
        ),
        "a step that was called already": (
            lambda: run(lambda ctx: ctx.step("pay", pay(1))),
            "step 'pay' takes a function, not str; pass the function and its arguments without calling it, "
            "as in `ctx.step('pay', function, argument)`",
        ),
        "an async step in a tool that is not": (
            lambda: run(lambda ctx: ctx.step("pay", pay_later)),
            "step 'pay' calls pay_later, which is async, in a tool that is not; write `async def` for the "
            "tool, with `ctx: AsyncContext`, and await the step, or pass a function that is not async",
        ),
        "a step that returns a coroutine": (
            lambda: run(lambda ctx: ctx.step("pay", lambda: pay_later())),
            "step 'pay' calls <lambda>, which is async, in a tool that is not; write `async def` for the "
            "tool, with `ctx: AsyncContext`, and await the step, or pass a function that is not async",
        ),
        "a step inside a step": (
            lambda: run(lambda ctx: ctx.step("outer", lambda: ctx.step("inner", pay))),
            "step 'outer' uses the context inside its function; call the context before it, and pass what "
            "the function needs",
        ),
        "a step that returns a datetime without saying so": (
            lambda: run(lambda ctx: ctx.step("when", lambda: datetime(2026, 7, 28, tzinfo=UTC))),
            "step 'when' returned datetime, and its function has no return annotation to read it back; write "
            "`-> datetime`, or `-> Any` for plain JSON data",
        ),
        "a step that returns what json cannot hold": (
            lambda: run(lambda ctx: ctx.step("connect", lambda: {"connection": Connection()})),
            "step 'connect' returned a value that JSON cannot hold, at result.connection: Connection; return "
            "text, numbers, lists or dicts, or annotate the function's return type",
        ),
        "a step that returns two keys with one name": (
            lambda: run(lambda ctx: ctx.step("count", lambda: {1: "a", "1": "b"})),
            "step 'count' returned a dict with two keys that have one name in JSON, such as 1 and '1'; use "
            "other keys",
        ),
        "a value whose type has no form in json": (
            lambda: round_trip(Connection(), Connection),
            "cannot have its return type: Connection cannot be written as JSON; use a type such as str, int, "
            "bool, datetime, list[str], a dataclass or a pydantic model",
        ),
        "a step that runs at most once and again": (
            lambda: run(lambda ctx: ctx.step("pay", pay, at_most_once=True, retry=Retry())),
            "step 'pay' has both at_most_once and retry; remove one of them",
        ),
        "a step that runs at most once outside a task": (
            lambda: run(lambda ctx: ctx.step("pay", pay, at_most_once=True)),
            "step 'pay' has at_most_once outside a task; call ctx.run_as_task() before the step",
        ),
        "no attempts": (
            lambda: Retry(attempts=0),
            "Retry(attempts=0, delay_ms=1000, factor=2.0, max_delay_ms=60000, on=(<class 'Exception'>,)) is "
            "not possible; use attempts and factor of at least 1, and delays of at least 0",
        ),
        "a task in a tool without one": (
            lambda: run(lambda ctx: ctx.run_as_task()),
            'run_as_task is called in a tool without task=; write @server.tool(task="optional"), or '
            '"required"',
        ),
        "a task with a lifetime of zero": (
            lambda: run(lambda ctx: ctx.run_as_task(ttl_ms=0)),
            "run_as_task: ttl_ms=0 is not a lifetime; pass whole milliseconds, at least 1",
        ),
        "a sleep outside a task": (
            lambda: run(lambda ctx: ctx.sleep("wait", 1_000)),
            "sleep 'wait' is called outside a task; call ctx.run_as_task() before it",
        ),
        "a sleep whose duration is text": (
            lambda: run(lambda ctx: ctx.sleep("wait", "1 h"), recorder=TaskJournal()),
            "sleep 'wait': '1 h' is not a duration; pass milliseconds from 0 to 315360000000",
        ),
        "a level that does not exist": (
            lambda: run(lambda ctx: ctx.log("loud", "a")),
            "log: 'loud' is not a log level; use one of debug, info, notice, warning, error, critical, "
            "alert, emergency",
        ),
        "log data that json cannot hold": (
            lambda: run(lambda ctx: ctx.log("info", Connection())),
            "log: JSON cannot hold this Connection; pass text, numbers, lists or dicts",
        ),
        "progress that is no number": (
            lambda: run(lambda ctx: ctx.progress("half")),
            "progress: 'half' is not a finite number; pass an int or a float",
        ),
        "an object without a name": (
            lambda: BUCKET.put(b"", ""),
            "'' is not a file name; use 1 to 255 characters without control characters",
        ),
        "an object of no type": (
            lambda: BUCKET.put(b"", "orders.csv", "csv"),
            "orders.csv: 'csv' is not a MIME type; use one such as 'text/csv'",
        ),
        "an object of text": (
            lambda: BUCKET.put("a,b", "orders.csv"),
            "orders.csv is text; encode it, or open the file in binary mode",
        ),
        "an object of neither bytes nor a file": (
            lambda: BUCKET.put(iter([b"a"]), "orders.csv"),
            "orders.csv is list_iterator, which cannot be read twice; pass bytes or an open binary file",
        ),
        "an object beyond an upload": (
            lambda: BUCKET.put(Endless(), "orders.csv"),
            "orders.csv has 5368709121 bytes, and one upload takes 5368709120; split it into several objects",
        ),
        "a link to an object with too long a lifetime": (
            lambda: BUCKET.link(Stored("key", "orders.csv", "text/csv", 3), ttl_ms=10**12),
            "ttl_ms=1000000000000 is not a lifetime of a link; use 1000 to 604800000 milliseconds",
        ),
        "a link that is signed with version 2": (
            lambda: BUCKET.link(Stored("key", "orders.csv", "text/csv", 3)),
            "the S3 client does not sign with version 4; make it with "
            "mcp_roundtrip.aws.boto3_client.s3_client(), or with Config(signature_version='s3v4')",
        ),
    },
)
