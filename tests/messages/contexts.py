"""What tools do with their context: questions, steps, tasks, reports."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, SecretStr, field_serializer

from mcp_roundtrip import (
    AsyncContext,
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
from messages.cases import run, run_async, says
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


@says(
    "key 'pay/1' is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of "
    "1 to 900 bytes with the names of its branches",
    InvalidKey,
)
def a_key_with_a_slash() -> None:
    run(lambda ctx: ctx.step("pay/1", pay))


@says(
    "key 7 is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of 1 to "
    "900 bytes with the names of its branches",
    InvalidKey,
)
def a_key_that_is_a_number() -> None:
    run(lambda ctx: ctx.elicit(7, "How many?", int))  # type: ignore[call-overload]


@says(
    "key "
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    " is not allowed; use a string such as 'size' or 'pay-1', without '~' and '/', and of 1 to 900 "
    "bytes with the names of its branches",
    InvalidKey,
)
def a_key_that_is_too_long() -> None:
    run(lambda ctx: ctx.step("x" * 901, pay))


@says(
    "key 'pay' is used twice in this call; give each question and step a key of its own, in a loop "
    "with the item in it, as in f'pay-{item.id}'",
    DuplicateKey,
)
def a_key_twice() -> None:
    run(lambda ctx: [ctx.step("pay", pay, amount) for amount in (1, 2)])


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


@says("question 'order': the message is int; pass a str")
def a_message_that_is_no_text() -> None:
    run(lambda ctx: ctx.elicit("order", 1, str))  # type: ignore[call-overload]


@says(
    "question 'order': the model is a value of type int; pass a flat pydantic model, or a type such as "
    "str, bool or Literal"
)
def a_form_of_no_type() -> None:
    ask(42)


@says(
    "question 'order': the model is a value of type list; pass one_of(names) for a choice of texts, or "
    "Literal['a', 'b']"
)
def a_form_of_a_list_of_choices() -> None:
    ask(["red", "blue"])


@says(
    "question 'order': the model is a value of type dict; write a flat pydantic model, or pass "
    "one_of(names) for a choice"
)
def a_form_of_a_json_schema() -> None:
    ask({"type": "string"})


@says("question 'order': the model is an instance of Address; pass the class Address")
def a_form_of_an_instance() -> None:
    ask(Address(street="a"))


@says(
    "question 'order': form Connection: Connection cannot be written as JSON; use a type such as "
    "str, int, bool, datetime, list[str], a dataclass or a pydantic model"
)
def a_form_with_a_type_that_json_has_no_form_for() -> None:
    ask(Connection)


@says(
    "question 'order': form Order: field 'address' is a nested object, and a form is flat; put its "
    "fields into the model itself"
)
def a_nested_form() -> None:
    ask(Order)


@says(
    "question 'order': form list: field 'value' is a list of objects, and a form is flat; use a flat "
    "model, and ask for one after the other"
)
def a_form_with_a_list_of_nested_models() -> None:
    ask(list[Address])


@says(
    "question 'order': form Free: field 'names' is a list of free values, and a form needs choices; "
    "use list[Literal['a', 'b']] or list[one_of(names)], or ask for a str and split it"
)
def a_form_with_a_list_of_free_text() -> None:
    ask(Free)


@says(
    "question 'order': form Either: field 'amount' is a union, and a field of a form has one type; "
    "use one type, or a field for each"
)
def a_form_with_a_union() -> None:
    ask(Either)


@says(
    "question 'order': form Numbers: field 'size' has choices that are not strings; use Literal['1', "
    "'2'] or an Enum of strings"
)
def a_form_with_choices_that_are_numbers() -> None:
    ask(Numbers)


@says(
    "question 'order': form Secret: field 'password' is a secret, and a form must not ask for one; "
    "use ctx.elicit_url"
)
def a_form_for_a_secret() -> None:
    ask(Secret)


@says(
    "question 'order': form Anything: field 'value' is a dict, and a form has fixed fields; write a "
    "field of the model for each entry"
)
def a_form_with_anything() -> None:
    ask(Anything)


@says("question 'order': default= is str, and the answer is int; pass a value of that type, or None")
def a_default_of_another_type() -> None:
    ask(int, default="2")


@says(
    "ask takes questions, not str; pass Elicit(key, message, model), ElicitUrl(...), Sample(...) or "
    "ListRoots()",
    UsageError,
)
def a_value_that_is_not_a_question() -> None:
    run(lambda ctx: ctx.ask("How many?"))  # type: ignore[arg-type]


@says(
    "question 'poem': Object contains unknown field `system_prompt`; write CreateMessageRequestParams of the "
    "MCP schema, in camelCase"
)
def a_parameter_of_sampling_in_snake_case() -> None:
    Sample("poem", "Write a poem.", 50, {"system_prompt": "You are a poet."})


@says("question 'pay': 'example.com/pay' is not an absolute URL; write one such as 'https://example.com/pay'")
def a_url_without_a_scheme() -> None:
    ElicitUrl("pay", "Pay here.", "example.com/pay", lambda: True)


@says(
    "question 'pay': done= is bool; pass a function without parameters, such as `done=lambda: is_paid(order)`"
)
def a_page_that_is_done_already() -> None:
    ElicitUrl("pay", "Pay here.", "https://example.com/pay", True)  # type: ignore[arg-type]


@says(
    "question 'pay': poll_interval_ms=1 is not an int of at least 1000; pass one, or None to call done() "
    "once in each round"
)
def a_page_that_is_looked_at_too_often() -> None:
    ElicitUrl("pay", "Pay here.", "https://example.com/pay", lambda: True, poll_interval_ms=1)


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


@says(
    "namespaced request 'approval' is made by a server that does not allow them; write Server(..., "
    "namespaced_requests=True)",
    UsageError,
)
def a_namespaced_request_of_a_server_that_makes_none() -> None:
    run(lambda ctx: ctx.request("approval", "com.example/approval"))


@says(
    "namespaced request 'approval': 'approval' is not a name in your own domain; write one such as "
    "'com.example/approval'"
)
def a_namespaced_request_without_a_domain() -> None:
    run(lambda ctx: ctx.request("approval", "approval"), info=CallInfo(namespaced_requests=True))


@says(
    "namespaced request 'approval' is made in a task, which cannot send it; call it before ctx.run_as_task()",
    UsageError,
)
def a_namespaced_request_in_a_task() -> None:
    run(lambda ctx: ctx.request("approval", "com.example/approval"), recorder=TaskJournal())


@says("question 'order': form Text: it has no fields; write a flat pydantic model or dataclass")
def a_form_without_fields() -> None:
    class Text(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            return {"type": "string"}

    ask(Text)


LINKS = make_ports().links()


@says(
    "a signed link is bound to one user, and this caller is anonymous; check ctx.principal first, or "
    "have callers authenticated (MCP_AUTH_MODE)",
    UsageError,
)
def a_link_for_an_anonymous_caller() -> None:
    LINKS.sign(None, "pay", "flow", 2_000_000_000)


@says("a signed link would have expired already; use ttl_ms of at least 1000", UsageError)
def a_link_that_has_expired() -> None:
    LINKS.sign("alice", "pay", "flow", 0)


@says("a signed link has at most 4096 characters, not 5780; use a shorter key", UsageError)
def a_signed_link_that_is_too_long() -> None:
    LINKS.sign("alice", "x" * 4_000, "flow", 2_000_000_000)


@says(
    "step 'pay' takes a function, not int; pass the function and its arguments without calling it, "
    "as in `ctx.step('pay', function, argument)`",
    UsageError,
)
def a_step_that_is_no_function() -> None:
    run(lambda ctx: ctx.step("pay", 42))  # type: ignore[call-overload]


@says(
    "step 'pay' takes a function, not str; pass the function and its arguments without calling it, "
    "as in `ctx.step('pay', function, argument)`",
    UsageError,
)
def a_step_that_was_called_already() -> None:
    run(lambda ctx: ctx.step("pay", pay(1)))  # type: ignore[call-overload]


@says(
    "step 'pay' calls pay_later, which is async, in a tool that is not; write `async def` for the "
    "tool, with `ctx: AsyncContext`, and await the step, or pass a function that is not async",
    UsageError,
)
def an_async_step_in_a_tool_that_is_not() -> None:
    run(lambda ctx: ctx.step("pay", pay_later))


@says(
    "step 'pay' calls <lambda>, which is async, in a tool that is not; write `async def` for the "
    "tool, with `ctx: AsyncContext`, and await the step, or pass a function that is not async",
    UsageError,
)
def a_step_that_returns_a_coroutine() -> None:
    run(lambda ctx: ctx.step("pay", lambda: pay_later()))


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
    "step 'outer' uses the context inside its function; call the context before it, and pass what the "
    "function needs",
    UsageError,
)
def a_step_inside_a_step() -> None:
    run(lambda ctx: ctx.step("outer", lambda: ctx.step("inner", pay)))


@says(
    "step 'when' returned datetime, and its function has no return annotation to read it back; "
    "write `-> datetime`, or `-> Any` for plain JSON data",
    UsageError,
)
def a_step_that_returns_a_datetime_without_saying_so() -> None:
    run(lambda ctx: ctx.step("when", lambda: datetime(2026, 7, 28, tzinfo=UTC)))


@says(
    "step 'connect' returned a value that JSON cannot hold, at result.connection: Connection; return "
    "text, numbers, lists or dicts, or annotate the function's return type",
    UsageError,
)
def a_step_that_returns_what_json_cannot_hold() -> None:
    run(lambda ctx: ctx.step("connect", lambda: {"connection": Connection()}))


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
        return "two"  # type: ignore[return-value]

    run(lambda ctx: ctx.step("count", count))


@says(
    "step 'count' returned a dict with two keys that have one name in JSON, such as 1 and '1'; use other "
    "keys",
    UsageError,
)
def a_step_that_returns_two_keys_with_one_name() -> None:
    run(lambda ctx: ctx.step("count", lambda: {1: "a", "1": "b"}))


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


@says(
    "cannot have its return type: Connection cannot be written as JSON; use a type such as str, int, "
    "bool, datetime, list[str], a dataclass or a pydantic model",
    UsageError,
)
def a_value_whose_type_has_no_form_in_json() -> None:
    round_trip(Connection(), Connection)


@says("step 'pay' has both at_most_once and retry; remove one of them", UsageError)
def a_step_that_runs_at_most_once_and_again() -> None:
    run(lambda ctx: ctx.step("pay", pay, at_most_once=True, retry=Retry()))


@says("step 'pay' has at_most_once outside a task; call ctx.run_as_task() before the step", UsageError)
def a_step_that_runs_at_most_once_outside_a_task() -> None:
    run(lambda ctx: ctx.step("pay", pay, at_most_once=True))


@says(
    "Retry(attempts=0, delay_ms=1000, factor=2.0, max_delay_ms=60000, on=(<class 'Exception'>,)) is "
    "not possible; use attempts and factor of at least 1, and delays of at least 0",
    UsageError,
)
def no_attempts() -> None:
    Retry(attempts=0)


@says(
    'run_as_task is called in a tool without task=; write @server.tool(task="optional"), or "required"',
    UsageError,
)
def a_task_in_a_tool_without_one() -> None:
    run(lambda ctx: ctx.run_as_task())


@says("run_as_task: ttl_ms=0 is not a lifetime; pass whole milliseconds, at least 1", UsageError)
def a_task_with_a_lifetime_of_zero() -> None:
    run(lambda ctx: ctx.run_as_task(ttl_ms=0))


@says("run_as_task is called in the branch 'eu'; call it before the branches begin", UsageError)
def a_task_in_a_branch() -> None:
    async def body(ctx: AsyncContext) -> None:
        await ctx.branch("eu").run_as_task()

    run_async(body)


@says("sleep 'wait' is called outside a task; call ctx.run_as_task() before it", UsageError)
def a_sleep_outside_a_task() -> None:
    run(lambda ctx: ctx.sleep("wait", 1_000))


@says("sleep 'wait': '1 h' is not a duration; pass milliseconds from 0 to 315360000000", UsageError)
def a_sleep_whose_duration_is_text() -> None:
    run(lambda ctx: ctx.sleep("wait", "1 h"), recorder=TaskJournal())  # type: ignore[arg-type]


@says(
    "log: 'loud' is not a log level; use one of debug, info, notice, warning, error, critical, "
    "alert, emergency",
    UsageError,
)
def a_level_that_does_not_exist() -> None:
    run(lambda ctx: ctx.log("loud", "a"))


@says("log: JSON cannot hold this Connection; pass text, numbers, lists or dicts", UsageError)
def log_data_that_json_cannot_hold() -> None:
    run(lambda ctx: ctx.log("info", Connection()))


@says("progress: 'half' is not a finite number; pass an int or a float", UsageError)
def progress_that_is_no_number() -> None:
    run(lambda ctx: ctx.progress("half"))  # type: ignore[arg-type]


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


@says("'' is not a file name; use 1 to 255 characters without control characters", UsageError)
def an_object_without_a_name() -> None:
    BUCKET.put(b"", "")


@says("orders.csv: 'csv' is not a MIME type; use one such as 'text/csv'", UsageError)
def an_object_of_no_type() -> None:
    BUCKET.put(b"", "orders.csv", "csv")


@says("orders.csv is text; encode it, or open the file in binary mode", UsageError)
def an_object_of_text() -> None:
    BUCKET.put("a,b", "orders.csv")  # type: ignore[arg-type]


@says(
    "orders.csv is list_iterator, which cannot be read twice; pass bytes or an open binary file",
    UsageError,
)
def an_object_of_neither_bytes_nor_a_file() -> None:
    BUCKET.put(iter([b"a"]), "orders.csv")  # type: ignore[arg-type]


@says(
    "orders.csv has 5368709121 bytes, and one upload takes 5368709120; split it into several objects",
    UsageError,
)
def an_object_beyond_an_upload() -> None:
    BUCKET.put(Endless(), "orders.csv")  # type: ignore[arg-type]


@says("ttl_ms=1000000000000 is not a lifetime of a link; use 1000 to 604800000 milliseconds", UsageError)
def a_link_to_an_object_with_too_long_a_lifetime() -> None:
    BUCKET.link(Stored("key", "orders.csv", "text/csv", 3), ttl_ms=10**12)


@says(
    "the S3 client does not sign with version 4; make it with mcp_roundtrip.aws.boto3_client.s3_client(), or "
    "with Config(signature_version='s3v4')",
    UsageError,
)
def a_link_that_is_signed_with_version_2() -> None:
    BUCKET.link(Stored("key", "orders.csv", "text/csv", 3))
