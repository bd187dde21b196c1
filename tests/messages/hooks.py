from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcp_roundtrip import Call, DefinitionError, Server, UsageError
from mcp_roundtrip_testing import Player
from messages.cases import mistake, mistakes


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


@mistake()
def a_hook_twice() -> None:
    server = Server("x")
    server.around(pass_through)
    server.around(pass_through)


@mistake(UsageError)
def a_hook_that_returns_early() -> None:
    def hook(call: Call) -> Iterator[None]:
        if call.method:
            return
        yield

    raise fault(hook)


@mistake(UsageError)
def a_hook_that_yields_twice() -> None:
    def hook(call: Call) -> Iterator[None]:
        yield
        yield

    raise fault(hook)


mistakes(
    __name__,
    DefinitionError,
    {
        "a hook without yield": lambda: Server("x").around(without_yield),
        "a hook without parameters": lambda: Server("x").around(without_parameters),
    },
)


mistakes(
    __name__,
    UsageError,
    {
        "too many fields": lambda: add(**{f"field_{number}": number for number in range(17)}),
        "a field with a capital": lambda: add(Tenant="a"),
        "a field that is a list": lambda: add(tenant=["a"]),
    },
)
