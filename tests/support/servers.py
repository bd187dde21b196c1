"""Servers for functions that a test defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp_roundtrip import Server
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.content.tool_results import Output

Function = Callable[..., Any]


def server_of(*tools: Function, prompts: Sequence[Function] = (), **options: Any) -> Server:
    """Return a server with these tools and prompts. `options` are those of Server."""
    server = Server(**{"name": "x", **options})
    for tool in tools:
        server.tool(tool)
    for prompt in prompts:
        server.prompt(prompt)
    return server


def output_of(annotation: Any) -> Output:
    def tool() -> None: ...

    tool.__annotations__["return"] = annotation
    return Output.from_function(tool)


def arguments_of(annotation: Any) -> Arguments:
    """Return the arguments of a tool with the one parameter `x`."""

    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation
    return Arguments.from_function(tool)
