"""What type checkers make of the public API: read by mypy, not run."""

from __future__ import annotations

from asyncio import gather
from collections.abc import AsyncIterator, Generator, Iterator
from datetime import datetime
from typing import Any, Literal, assert_type
from uuid import UUID

from pydantic import BaseModel

from mcp_roundtrip import (
    AsyncContext,
    Call,
    Context,
    Elicit,
    ListRoots,
    Principal,
    Retry,
    Root,
    Sample,
    Sampled,
    Server,
)
from mcp_roundtrip_testing import Player

server = Server("typed")


class Size(BaseModel):
    vcpus: int


def create(name: str, *, vcpus: int) -> list[str]:
    return [name] * vcpus


async def create_later(name: str) -> bytes:
    return name.encode()


@server.tool
def synchronous(ctx: Context, name: str) -> int:
    assert_type(ctx.elicit("a", "?", Size), Size)
    assert_type(ctx.elicit("b", "?", bool, user_only=False), bool)
    assert_type(ctx.confirm("sure", "?"), bool)
    assert_type(ctx.elicit("c", "?", str, default="x"), str)
    assert_type(ctx.sample("d", "?", max_tokens=1), Sampled)
    assert_type(ctx.list_roots(), tuple[Root, ...])
    assert_type(ctx.ask(Elicit("e", "?", Size), ListRoots("f")), tuple[Size, tuple[Root, ...]])
    assert_type(ctx.ask(Elicit("n", "?", Literal["a"]), Elicit("o", "?", int, None)), tuple[Any, int | None])
    size, said, flag = ctx.ask(Elicit("g", "?", Size), Sample("h", "?", 1), Elicit("i", "?", bool))
    assert_type(size, Size)
    assert_type(said, Sampled)
    assert_type(flag, bool)
    assert_type(ctx.step("j", create, name, vcpus=2), list[str])
    assert_type(ctx.step("l", create, name, vcpus=2, retry=Retry()), list[str])
    assert_type(ctx.step("m", create, name, vcpus=2, at_most_once=True), list[str])
    ctx.step("k", create, name, vcpus="two")  # type: ignore[arg-type]  # the step's own signature is checked
    return 1


@server.tool(title="Asynchronous")
async def asynchronous(ctx: AsyncContext, name: str) -> int:
    assert_type(await ctx.elicit("a", "?", Size), Size)
    assert_type(await ctx.step("b", create_later, name), bytes)
    assert_type(await ctx.step("c", create, name, vcpus=1), list[str])
    assert_type(await ctx.step("r", create_later, name, retry=Retry()), bytes)
    assert_type(await ctx.step("s", create, name, vcpus=1, at_most_once=True), list[str])
    assert_type(await ctx.elicit("d", "?", str, default="x"), str)
    assert_type(await ctx.sample("e", "?", max_tokens=1), Sampled)
    assert_type(await ctx.list_roots(), tuple[Root, ...])
    assert_type(await ctx.ask(Elicit("f", "?", Size), ListRoots("g")), tuple[Size, tuple[Root, ...]])
    assert_type(await ctx.now("h"), datetime)
    assert_type(await ctx.uuid("i"), UUID)
    assert_type(await ctx.random("j"), float)
    assert_type(await ctx.signed_link("k", "https://x.test"), str)
    made, asked = await gather(ctx.step("l", create_later, name), ctx.elicit("m", "?", bool))
    assert_type(made, bytes)
    assert_type(asked, bool)
    await ctx.step("n", create, name, vcpus="two")  # type: ignore[arg-type]
    await ctx.now(1)  # type: ignore[arg-type]
    ctx.elicit("o", "?", bool)  # type: ignore[unused-coroutine]  # a forgotten await
    if await ctx.elicit("p", "?", bool) and ctx.elicit("q", "?", bool):  # type: ignore[truthy-bool]
        return 0

    async def branch(ctx: AsyncContext) -> int:
        return 1

    assert_type(await ctx.gather({"a": branch}), dict[str, int])
    return 1


Player(lambda: server)
assert_type(synchronous(Context.__new__(Context), "x"), int)


@server.around
def hook(call: Call) -> Iterator[None]:
    assert_type(call.principal, Principal | None)
    assert_type(call.scopes, frozenset[str] | None)
    assert_type(call.is_first_pass, bool)
    call.add_fields(tenant="a", size=1, ratio=0.5, beta=True)
    call.add_fields(tenant=None)  # type: ignore[arg-type]  # a field is a string, a number or a boolean
    call.name = "other"  # type: ignore[misc]  # a hook changes nothing
    if call.scopes is not None and "admin" in call.scopes:
        return
    yield


@server.around
def generator(call: Call) -> Generator[None]:
    yield


@server.around
async def async_hook(call: Call) -> AsyncIterator[None]:
    yield


assert_type(list(hook(Call.__new__(Call))), list[None])  # the decorator returns the function unchanged


@server.around  # type: ignore[type-var]  # a hook yields
def no_hook(call: Call) -> None: ...
