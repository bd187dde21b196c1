"""A server with one feature for each way in which a client's values reach this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import AnyUrl, BaseModel, Field, JsonValue, PostgresDsn

from mcp_roundtrip import AsyncContext, Context, McpHeader, Server
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip_testing.ports import make_ports
from support.costly_schemas import NESTED, OPTIONS, RAW, SEARCH
from support.costly_types import Folder, Record, Wide, alike, choices, integers


class Tree(BaseModel):
    """Recursion through plain members."""

    a: int
    b: int
    c: int
    d: int
    left: Tree | None = None
    right: Tree | None = None


class Add(BaseModel):
    op: Literal["add"]
    left: Formula
    right: Formula


class Multiply(BaseModel):
    op: Literal["multiply"]
    left: Formula
    right: Formula


Formula = Annotated[Add | Multiply, Field(discriminator="op")] | int


class Cat(BaseModel):
    kind: Literal["cat"]
    name: str


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


Eight: Any = integers("Eight", "abcdefgh")
Chosen: Any = choices(7)
Alike: Any = alike(100)


@dataclass
class Point:
    x: float
    y: float


Searched = Annotated[str, Field(pattern=SEARCH)]
Counted = Annotated[str, Field(pattern=NESTED, max_length=800)]
Either = (
    Searched | Annotated[str, Field(pattern=r"(\w?){100}-")] | Annotated[str, Field(pattern="a[ab]{900}c")]
)


class Code(BaseModel):
    """A form with patterns."""

    code: Searched
    counted: Counted = "ab"


class Note(BaseModel):
    """A form."""

    title: str
    count: int


# states with keys in memory, and the log of a deployment
_ports = replace(make_ports(), observer=LogObserver())

server = Server("exposed", ports=lambda: _ports)

_option: Any = Literal[tuple(OPTIONS)]

PLAIN: Mapping[str, tuple[str, Any]] = {
    "integers": ("items", list[int]),
    "numbers": ("items", set[int]),
    "models": ("items", list[Eight]),
    "mapped": ("items", dict[str, Eight]),
    "records": ("items", list[Record]),
    "options": ("items", list[_option]),
    "chosen": ("items", list[Chosen]),
    "alike_choices": ("items", list[Alike]),
    "animals": ("items", list[Cat | Dog | Point | Eight]),
    "tree": ("root", Tree),
    "wide": ("value", Wide),
    "folder": ("root", Folder),
    "formula": ("expression", Formula),
    "free": ("value", JsonValue),
    "region": ("name", Annotated[str, McpHeader("Region")]),
}
"""Tool -> its only argument, and the type of it."""


def _taking(name: str, kind: Any) -> Callable[..., int]:
    def take(**arguments: Any) -> int:
        return len(arguments)

    vars(take)["__signature__"] = Signature([Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind)])
    take.__annotations__ = {name: kind, "return": int}
    return take


for _name, _argument in PLAIN.items():
    server.tool(name=_name)(_taking(*_argument))


@server.tool
def echo(text: str) -> str:
    return text


@server.tool
def scalars(
    text: str = "",
    number: int = 0,
    amount: Decimal = Decimal(0),
    link: AnyUrl | None = None,
    ratio: float = 0.0,
    code: Annotated[str, Field(pattern="^(a+)+$")] = "a",
    either: int | float | Decimal | AnyUrl | bool | None = None,
    database: PostgresDsn | None = None,
) -> str:
    return text


@server.tool
def patterns(
    text: Searched = "a-",
    counted: Counted = "ab",
    counted_items: list[Counted] | None = None,
    either: Either = "a-",
    by_name: dict[Searched, int] | None = None,
    number: int = 0,
) -> str:
    return text


@server.tool
def asks_code(ctx: Context) -> str:
    return ctx.elicit("code", "Which code?", Code).code


@server.tool
def anything(value: dict[str, Any], other: list[Any] | None = None) -> dict[str, Any]:
    return value


@server.tool
def fails(value: dict[str, Any]) -> str:
    raise RuntimeError(f"no {value}")


@server.tool
def reports(ctx: Context, count: int = 100) -> str:
    for number in range(count):
        ctx.progress(number, count, "half-way")
        ctx.log("info", {"number": number})
    return "done"


@server.tool
def asks(ctx: Context, text: str = "") -> str:
    note = ctx.elicit("note", f"Which one, {text[:20]}?", Note)
    again = ctx.elicit("again", f"{note.title[:20]}?", Note)
    return again.title


@server.tool
def asks_about(ctx: Context, value: dict[str, Any]) -> str:
    return ctx.elicit("note", f"Which of {len(value)}?", Note).title


@server.tool
async def asks_later(ctx: AsyncContext, text: str = "") -> str:
    note = await ctx.elicit("note", "Which one?", Note)
    return note.title


@server.tool
def samples(ctx: Context) -> str:
    roots = ctx.list_roots()
    return ctx.sample("said", "What?", max_tokens=9).text + str(len(roots))


@server.tool(task="optional")
def works(ctx: Context, value: dict[str, Any]) -> str:
    ctx.run_as_task()
    return ctx.elicit("name", "Name?", str)


def _raw(value: dict[str, Any]) -> int:
    return len(value)


for _name, _schema in RAW.items():
    server.tool(name=_name, input_schema=_schema)(_raw)


@server.prompt
def prompt(topic: str = "", tone: Literal["dry", "warm"] = "dry") -> str:
    return topic


@server.resource("note://{name}", name="note")
def note(name: str) -> str:
    return name


@server.completion("prompt", "topic")
def topics(typed: str) -> list[str]:
    return [typed]
