"""A server with features of every kind, a client of it, and the requests of a conforming client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from corpus import callers
from corpus.client import Client
from corpus.client_kinds import KINDS
from corpus.deployment import GetPorts, World
from corpus.features import Feature, register
from corpus.recording import Case
from mcp_roundtrip import Completion, McpHeader, ResourceNotFound, Server

FORMS = KINDS["shows forms and URLs"]


def full_server(world: World, **options: Any) -> Callable[[GetPorts], Server]:
    """Return what makes a server with features of every kind."""

    def make(ports: GetPorts) -> Server:
        server = Server("corpus", ports=ports, title="The corpus", instructions="Ask.", **options)
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

    return make


Step = Callable[[Client], Any]


def case(name: str, *steps: Step, kind: str = "shows forms and URLs", **options: Any) -> Case:
    """Return a case in which a client sends requests to the full server."""

    def run(world: World) -> None:
        client = deployed(world, KINDS[kind], **options)
        for step in steps:
            step(client)

    return Case(f"request: {name}", run)


def deployed(
    world: World,
    kind: Any = FORMS,
    *,
    mode: str = "none",
    source: str = "http_api",
    settings: Mapping[str, str] | None = None,
    person: str | None = "alice",
    opens: bool = True,
    **options: Any,
) -> Client:
    """Deploy the full server, and return a client that has opened."""
    given = {**callers.settings(mode, world), **(settings or {})}
    function = world.function(full_server(world, **options), **given)
    client = Client(world, function, kind, mode, source, None if mode == "none" else person)
    if opens:
        client.open()
    return client


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
