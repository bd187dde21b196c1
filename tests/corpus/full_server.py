"""A server with features of every kind, a client of it, and the requests of a conforming client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final

from corpus.client import Client, deployed
from corpus.deployment import World
from corpus.features import Feature, register
from corpus.recording import Case
from mcp_roundtrip import Completion, McpHeader, ResourceNotFound, Server


def full_server(world: World, **options: Any) -> Server:
    """Return a server with features of every kind."""
    server = Server("corpus", title="The corpus", instructions="Ask.", **options)
    register(server, Feature(("form", "step"), task="optional", scopes=("db:write",)), world)
    register(server, Feature(("form",), kind="prompt"), world)
    register(server, Feature(("step",), kind="resource"), world)

    @server.tool(annotations={"readOnlyHint": True}, title="Add")
    def add(a: int, b: int = 2) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @server.tool(requires=["sampling"], scopes=["db:admin"])
    def drop(name: str) -> str:
        """Drop a database."""
        return name

    @server.tool
    def region(place: Annotated[str, McpHeader("Region")]) -> str:
        """Tell the region."""
        return place

    @server.resource("docs://guide", mime_type="text/markdown", ttl_ms=60_000, cache_scope="public")
    def guide() -> str:
        """The guide."""
        return "# Guide"

    @server.resource("docs://missing")
    def missing() -> str:
        """Nothing."""
        raise ResourceNotFound

    @server.resource("docs://bytes")
    def data() -> bytes:
        """Bytes."""
        return b"\x00\x01"

    @server.completion("play", "subject")
    def subjects(text: str) -> Completion:
        return Completion([each for each in ("orders", "invoices") if each.startswith(text)], total=9)

    return server


Step = Callable[[Client], Any]


def case(name: str, *steps: Step, server: Mapping[str, Any] | None = None, **options: Any) -> Case:
    """Return a case in which a client sends requests to the full server with these options of `server`."""

    def run(world: World) -> None:
        client = deployed_full(world, server, **options)
        for step in steps:
            step(client)

    return Case(f"request: {name}", run)


def deployed_full(world: World, server: Mapping[str, Any] | None = None, **options: Any) -> Client:
    """Deploy the full server. `options` are those of `deployed`."""
    return deployed(world, partial(full_server, world, **(server or {})), **options)


def ask(method: str, headers: Mapping[str, str | None] | None = None, /, **params: Any) -> Step:
    """Return a step that sends a conforming request, with changed headers."""
    return lambda client: client.request(method, params, **(headers or {}))


def call(name: str, /, **arguments: Any) -> Step:
    return ask("tools/call", name=name, arguments=arguments)


def complete(prompt: str) -> Step:
    """Return a step that completes an argument of a prompt."""
    argument = {"name": "subject", "value": "o"}
    return ask("completion/complete", ref={"type": "ref/prompt", "name": prompt}, argument=argument)


ADD: Final = call("add", a=1)
