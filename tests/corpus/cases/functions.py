"""What an author's function may do besides asking: mistakes, branches, hooks, results, views, drift."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from corpus import author
from corpus.author import FUNCTIONS, HOOKS
from corpus.client import Client, deployed
from corpus.conversation import PARKED, Conversation, form_fields, talk
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


ASKING: Final = (
    author.swallowed_question,
    author.many_questions,
    author.branches,
    author.group,
    author.chosen_titles,
    author.supports,
    author.idempotent,
)
"""The functions that a client which cannot be asked calls, too."""


MODEL_ANSWERS: Final[tuple[Any, ...]] = (
    [],
    {"a": {"action": "decline"}},
    {"a": {"action": "accept", "content": {"value": "x"}}},
    {"a": None},
)


def cases() -> Iterator[Case]:
    for function in FUNCTIONS:
        name = function.__name__.replace("_", " ")
        for client in ("answers everything, follows tasks", "declares nothing"):
            table = TASKS if client == "declares nothing" else {}
            if table and function not in ASKING:
                continue
            yield Case(f"function: {name}, client {client}", converse, tool(function), client, table)
    for hook in HOOKS:
        for body in (author.branches, author.idempotent):
            if hook in (author.refuses, author.adds_too_much) and body is not author.idempotent:
                continue  # the function does not run
            name = f"function: hook {hook.__name__} around {body.__name__}"
            hooked = partial(_with_hook, hook, body)
            yield Case(name, converse, hooked, "shows forms and URLs", {})
    for name, register in FEATURES.items():
        yield Case(f"function: {name}", _request, register, name)
    for client in ("2025-11-25, declares nothing", "declares nothing"):
        yield Case(f"function: numbers, client {client}", converse, tool(author.numbers), client, {})
        for given in MODEL_ANSWERS:
            name = f"function: answers {given} through the model, client {client}"
            yield Case(name, _through_model, given, client)
    every = tool(author.every_field)
    yield Case("function: every field, invalid", converse, every, "shows forms", {}, answer="invalid")
    for action in ("accept", "decline", "invalid"):
        yield Case(f"function: every field on the page, {action}", _on_page, action)
    for client in ("shows forms, also in apps", "2025-11-25, shows apps", "declares nothing"):
        yield Case(f"function: a view of its own, client {client}", _view, client)
    yield Case("function: drift between rounds", _drift, ("form", "step"), ("form", "other step", "step"), 1)
    yield Case("function: a step that is gone", _drift, ("form", "step", "choice"), ("form", "choice"), 2)
    yield Case("function: another answer type", _drift, ("form", "choice"), ("two forms", "choice"), 1)


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


def _with_hook(hook: Any, function: Callable[..., Any], server: Server, world: World) -> None:
    server.around(hook)
    tool(function)(server, world)


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
    "a resource that raises": _resource(author.failing_resource),
    "a template with a query": _resource(author.explode, "play://{+path}{?q}"),
    "a prompt of messages": _prompt(author.messages),
    "a prompt of a number": _prompt(author.wrong_messages),
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
        fill_in(conversation, response["result"]["_meta"][PARKED]["url"], VALUES)
        conversation.call()
    conversation.go_on(response)


def fill_in(conversation: Conversation, url: str, values: Sequence[Mapping[str, Any]]) -> None:
    """Open the page at a link, and send its form once with each of some values."""
    client = conversation.client
    usual: dict[str, Any] = dict(form_fields(client.page(url)["body"], "accept"))
    for each in values:
        client.page(url, "POST", urlencode({**usual, **each}, doseq=True))


def _through_model(given: Any, client: str, world: World) -> None:
    opened = connected(tool(author.swallowed_question, channels=("model",)), client, {}, world)
    arguments = {"subject": "x", "input_responses": given}
    opened.request("tools/call", {"name": "play", "arguments": arguments})


def _view(client: str, world: World) -> None:
    view = "<!doctype html><title>Play</title>"
    opened = connected(tool(author.swallowed_question, ui=view), client, TASKS, world)
    opened.request("tools/list", {})
    opened.request("resources/read", {"uri": "ui://corpus/play"})
    opened.request("resources/read", {"uri": "ui://mcp-roundtrip/questions"})
    Conversation(opened).run()


def _drift(before: tuple[str, ...], after: tuple[str, ...], rounds: int, world: World) -> None:
    """Run some rounds with one version of the code, and the others with another one."""
    conversation = talk(world, *before)
    response: dict[str, Any] | None = conversation.call()
    for _ in range(rounds - 1):
        response = conversation._react(response or {})
    conversation.client.function = talk(world, *after).client.function
    conversation.go_on(response or {})
