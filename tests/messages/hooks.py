"""Hooks: what `@server.around` refuses, and what a hook does wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcp_roundtrip import Call, DefinitionError, Server, UsageError
from mcp_roundtrip_testing import Player
from messages.cases import mistakes, says


def pass_through(call: Call) -> Iterator[None]:
    yield


def without_yield(call: Call) -> None:
    return None


def without_parameters() -> Iterator[None]:
    yield


def fault(hook: Callable[[Call], Iterator[None]]) -> BaseException:
    """Return what the log has of a call of a server with this hook."""
    server = Server("x")
    server.around(hook)

    @server.tool
    def greet() -> str:
        return "hello"

    player = Player(server)
    player.send("greet", {}, None, None)
    [(_, failure)] = player.observer.failures
    return failure


def add(**fields: Any) -> None:
    def hook(call: Call) -> Iterator[None]:
        call.add_fields(**fields)
        yield

    raise fault(hook)


@says("@server.around: pass_through is registered twice; remove one of them")
def a_hook_twice() -> None:
    server = Server("x")
    server.around(pass_through)
    server.around(pass_through)


@says("the hook hook returned before its `yield`; raise ToolError to refuse a call", UsageError)
def a_hook_that_returns_early() -> None:
    def hook(call: Call) -> Iterator[None]:
        if call.method:
            return
        yield

    raise fault(hook)


@says("the hook hook yields twice; remove the second `yield`", UsageError)
def a_hook_that_yields_twice() -> None:
    def hook(call: Call) -> Iterator[None]:
        yield
        yield

    raise fault(hook)


mistakes(
    __name__,
    DefinitionError,
    {
        "a hook without yield": (
            lambda: Server("x").around(without_yield),
            "@server.around: without_yield has no `yield`; write one where the tool runs, as in `def "
            "without_yield(call: Call) -> Iterator[None]: yield`",
        ),
        "a hook without parameters": (
            lambda: Server("x").around(without_parameters),
            "@server.around: without_parameters takes one argument; write `def without_parameters(call: "
            "Call)`",
        ),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "too many fields": (
            lambda: add(**{f"field_{number}": number for number in range(17)}),
            "hooks added 17 fields to one pass; add at most 16",
        ),
        "a field with a capital": (
            lambda: add(Tenant="a"),
            "add_fields: the name 'Tenant' is not allowed; use lower-case letters, digits and underscores, "
            "and at most 40 characters",
        ),
        "a field that is a list": (
            lambda: add(tenant=["a"]),
            "add_fields: tenant is list; use a string, a finite number of 64 bits or a boolean",
        ),
    },
)
