"""A front door that forwards to its owners: conversations, the catalog, and owners that fail."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from corpus import callers
from corpus.client import Client, deployed
from corpus.client_kinds import KINDS
from corpus.conversation import Conversation
from corpus.deployment import TASKS, WORKER, Function, World
from corpus.features import Feature, make_server
from corpus.full_server import ADD, Step, ask, call, complete, full_server
from corpus.recording import Case
from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip_tools.catalog.catalog import render_servers

SKILLS: Final = Path(__file__).parents[2] / "conformance_server" / "skills"
FLOW: Final = Feature(
    ("form", "step", "choice"), task="optional", channels=("app", "page", "model", "default")
)
LONG_FLOW: Final = Feature(("slow step", "other slow step", "third slow step", "form"), task="optional")
TASK_FLOW: Final = Feature(("form", "task", "step"), task="optional")
CLIENTS: Final = (
    *("samples and has roots", "shows apps", "shows apps, follows tasks", "shows forms, also in apps"),
    *("claude.ai with forms", "claude.ai declares nothing"),
    *("2025-11-25, declares nothing", "2025-06-18, shows forms"),
)
CATALOGS: Final = tempfile.TemporaryDirectory()
"""Removed at the end of the process."""


@cache
def catalog(feature: Feature) -> Path:
    """Write the catalog of the owners `play` and `full`."""
    world: Any = None
    play, full = make_server(feature, world), _full_server(world)
    del full.tools["play"]
    with tempfile.NamedTemporaryFile("w", dir=CATALOGS.name, delete=False) as file:
        file.write(render_servers({"play": play, "full": full}))
    return Path(file.name)


def _full_server(world: World) -> Server:
    server = full_server(world)
    server.skills(SKILLS)
    return server


def deployed_door(
    world: World,
    feature: Feature = FLOW,
    *,
    settings: Mapping[str, str] | None = None,
    owners: str = "corpus_*",
    **options: Any,
) -> Client:
    """Deploy the owners and the front door, and return a client of the front door that has opened.

    `options` are those of `deployed`.
    """
    options = {"mode": "jwt", "settings": {**TASKS, **(settings or {})}, **options}
    unopened = {**options, "opens": False}
    deployed(world, partial(make_server, feature, world), "corpus_play", **unopened)
    deployed(world, partial(_full_server, world), "corpus_full", **unopened)
    door = partial(FrontDoor, "front", catalog(feature), title="The front door")
    options["settings"] = {**options["settings"], "MCP_OWNERS": owners}
    return deployed(world, door, "corpus_front_door", **options)


def cases() -> Iterator[Case]:
    for client in CLIENTS:
        yield Case(f"front door: client {client}, rounds", _converse, FLOW, client)
        yield Case(f"front door: client {client}, lists", _send, LISTS, client=client)
        if not KINDS[client].is_legacy:
            yield Case(f"front door: client {client}, a long step", _converse, LONG_FLOW, client)
    client = "answers everything, follows tasks"
    yield Case("front door: a call that becomes a task", _converse, TASK_FLOW, client)
    for mode in callers.MODES:
        yield Case(f"front door: with {mode}", _send, (ADD, call("play", subject="x"), PROMPT), mode=mode)
        yield Case(f"front door: no caller with {mode}", _send, (ADD,), mode=mode, person=None)
    for name, step in STEPS.items():
        yield Case(f"front door: {name}", _send, (step,), client="shows apps, follows tasks")
        if name.startswith(("discovery", "an unknown", "an answer", "the view", "a skill", "a task")):
            client = "2025-11-25, declares nothing"
            yield Case(f"front door: {name}, legacy client", _send, (step,), client=client)
    owners = '{"other": "x"}'
    yield Case("front door: no owner", _send, (ADD, _path("/mcp/tools/full")), owners=owners)
    yield Case("front door: an owner is throttled", _throttled)
    path, settings = "/mcp/server-card", {"MCP_SERVER_CARD": "com.example/corpus"}
    yield Case(f"front door: GET {path}", _send, (_get(path),), mode="bearer", settings=settings)


PROMPT: Final = ask("prompts/get", name="play", arguments={"subject": "x"})
LISTS: Final = (
    *(ask(method) for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")),
    ask("skills/list"),
)
STEPS: Final[Mapping[str, Step]] = {
    "discovery": ask("server/discover"),
    "an unknown tool": call("none"),
    "an unknown prompt": ask("prompts/get", name="none"),
    "a resource": ask("resources/read", uri="docs://guide"),
    "a resource in another spelling": ask("resources/read", uri="DOCS://guide"),
    "an unknown resource": ask("resources/read", uri="docs://none"),
    "a template": ask("resources/read", uri="play://x"),
    "the view of questions": ask("resources/read", uri="ui://mcp-roundtrip/questions"),
    "a completion": complete("play"),
    "a completion of nothing": complete("none"),
    "an unknown method": ask("x/y"),
    "skills": ask("skills/list"),
    "a skill": ask("skills/get", uri="skill://git-workflow/SKILL.md"),
    "a file of a skill": ask("resources/read", uri="skill://git-workflow/SKILL.md"),
    "an unknown skill": ask("skills/get", uri="skill://none/SKILL.md"),
    "the folder of a skill": ask("resources/directory/read", uri="skill://git-workflow"),
    "a task": ask("tasks/get", taskId="x" * 32),
    "an answer of a view": call(
        "answer_questions", tool="play", arguments={"subject": "x"}, state="x", answers={}
    ),
    "an answer of a view for no tool": call(
        "answer_questions", tool="none", arguments={}, state="x", answers={}
    ),
    "an owner's refusal": call("add", a="x"),
}


def _converse(feature: Feature, client: str, world: World) -> None:
    opened = deployed_door(world, feature, client=client)
    worker = Function(world, partial(make_server, feature, world), WORKER, opened.function.environment)
    Conversation(opened, worker=worker).run()


def _send(steps: tuple[Step, ...], world: World, *, person: str | None = "alice", **options: Any) -> None:
    client = deployed_door(world, **options)
    if person is None:
        client.person = None
    for step in steps:
        step(client)


def _path(path: str) -> Step:
    return lambda client: client.another(path=path).request(
        "tools/call", {"name": "add", "arguments": {"a": 1}}
    )


def _get(path: str) -> Step:
    return lambda client: client.another(person=None).http("GET", path, {})


def _throttled(world: World) -> None:
    client = deployed_door(world)
    world.account.fail("lambda", "Invoke", "TooManyRequestsException", 429)
    ADD(client)
    _path("/tools/full")(client)
