"""What an author's function may do besides asking: branches, hooks, results and views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from corpus import author
from corpus.author import FUNCTIONS, HOOKS
from corpus.client import Client, deployed
from corpus.conversation import PARKED, Conversation, form_fields
from corpus.deployment import TASKS, World
from corpus.recording import Case
from mcp_roundtrip import Server

Register = Callable[[Server, World], None]
"""Registers a feature named `play`."""


def tool(function: Callable[..., Any], **options: Any) -> Register:
    """Return what registers a function as the tool `play`."""

    def register(server: Server, world: World) -> None:
        server.tool("play", description="Plays.", **options)(function)

    return register


def cases() -> Iterator[Case]:
    for function in FUNCTIONS:
        name = function.__name__.replace("_", " ")
        client = "answers everything, follows tasks"
        yield Case(f"function: {name}, client {client}", converse, tool(function), client, {})
    for hook in HOOKS:
        name = f"function: hook {hook.__name__} around idempotent"
        yield Case(name, converse, partial(_with_hook, hook), "shows forms and URLs", {})
    for name, register in FEATURES.items():
        yield Case(f"function: {name}", _request, register, name)
    every = tool(author.every_field)
    yield Case("function: every field, invalid", converse, every, "shows forms", {}, answer="invalid")
    for action in ("accept", "decline", "invalid"):
        yield Case(f"function: every field on the page, {action}", _on_page, action)
    for client in ("shows forms, also in apps", "2025-11-25, shows apps", "declares nothing"):
        yield Case(f"function: a view of its own, client {client}", _view, client)


def _make(register: Register, world: World) -> Server:
    server = Server("corpus", namespaced_requests=True)
    register(server, world)
    return server


def connected(register: Register, client: str, settings: Mapping[str, str], world: World) -> Client:
    """Deploy a server with a feature, and return a client that has opened."""
    meta = {"progressToken": 7, "io.modelcontextprotocol/logLevel": "info"}
    make = partial(_make, register, world)
    return deployed(world, make, client=client, mode="jwt", settings=settings, meta=meta)


def converse(register: Register, client: str, settings: Any, world: World, answer: str = "accept") -> None:
    """Deploy a server with a feature, and play a conversation with it."""
    Conversation(connected(register, client, settings, world), answer=answer).run()


def _with_hook(hook: Any, server: Server, world: World) -> None:
    server.around(hook)
    tool(author.idempotent)(server, world)


def _resource(function: Callable[..., Any], uri: str = "play://x", **options: Any) -> Register:
    def register(server: Server, world: World) -> None:
        server.resource(uri, **options)(function)

    return register


def _prompt(function: Callable[..., Any]) -> Register:
    def register(server: Server, world: World) -> None:
        server.prompt("play")(function)

    return register


FEATURES: Final[Mapping[str, Register]] = {
    "a resource of two contents": _resource(author.text_and_bytes),
    "a resource of JSON": _resource(author.json_contents, mime_type="application/json"),
    "a template with a query": _resource(author.explode, "play://{+path}{?q}"),
    "a prompt of messages": _prompt(author.messages),
}


def _request(register: Register, name: str, world: World) -> None:
    client = connected(register, "shows forms and URLs", {}, world)
    if "prompt" in name:
        for arguments in ({}, {"count": "2"}, {"count": "secret-4711"}, {"other": "1"}):
            client.request("prompts/get", {"name": "play", "arguments": arguments})
        client.request("prompts/list", {})
        return
    for uri in ("play://x", "play://a/b?q=c%20d", "play://x?q", "play://"):
        client.request("resources/read", {"uri": uri})
    client.request("resources/list", {})
    client.request("resources/templates/list", {})


VALUES: Final[Sequence[Mapping[str, Any]]] = (
    {"0.0": "x", "0.1": "0", "0.2": "1.5", "0.5": "tomorrow", "0.6": ["noon", "+02:00"]},
    {"0.1": "10"},
    {
        "0.0": "text",
        "0.1": "9",
        "0.2": "0.25",
        "0.6": ["2026-08-02T10:00", "+02:00"],
        "0.7": ["0", "2"],
        "0.8": "3",
    },
)
"""Values of each field of `Everything`, some of them wrong, some the last ones that are right."""


def _on_page(action: str, world: World) -> None:
    client = connected(tool(author.every_field, channels=("page",)), "declares nothing", TASKS, world)
    conversation = Conversation(client)
    response = conversation.call()
    conversation.answer = action
    if action == "accept":
        url = response["result"]["_meta"][PARKED]["url"]
        usual: dict[str, Any] = dict(form_fields(client.page(url)["body"], "accept"))
        for each in VALUES:
            client.page(url, "POST", urlencode({**usual, **each}, doseq=True))
        conversation.call()
    conversation.go_on(response)


def _view(client: str, world: World) -> None:
    view = "<!doctype html><title>Play</title>"
    opened = connected(tool(author.swallowed_question, ui=view), client, TASKS, world)
    opened.request("tools/list", {})
    opened.request("resources/read", {"uri": "ui://corpus/play"})
    opened.request("resources/read", {"uri": "ui://mcp-roundtrip/questions"})
    Conversation(opened).run()
