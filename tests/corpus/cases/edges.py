"""Versions of sessions, lists of tools that return a type, and what changes between two rounds of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel

from corpus.cases import functions
from corpus.cases.tasks import play_acts, poll, work
from corpus.client_kinds import KINDS
from corpus.conversation import run, talk
from corpus.deployment import QUEUED_TASKS, TASKS, World
from corpus.features import Size
from corpus.recording import Case
from mcp_roundtrip import AsyncContext, Context, Server

LISTING: Final = (
    *("shows forms and URLs, follows tasks", "samples and has roots", "shows apps", "declares nothing"),
    *("2025-11-25, shows apps", "2025-06-18, declares nothing", "claude.ai declares nothing"),
)


def cases() -> Iterator[Case]:
    yield Case("request: a URL in sessions of each version, with and without the version", _versions)
    for client in LISTING:
        yield Case(f"channels: list of tools that return a type, client {client}", _list, client)
    yield from _between_rounds()
    yield from _functions()


def _versions(world: World) -> None:
    """Ask at a URL, with and without the version, in a session of each version that may show URLs."""
    client = talk(world, "url", "step", client="2025-11-25, shows forms and URLs", mode="jwt").client
    for version in ("2025-06-18", "2025-11-25"):
        client = client.another(kind=replace(client.kind, version=version))
        client.open()
        for header in (None, "2025-11-25", "2025-06-18"):
            params = {"name": "play", "arguments": {"subject": "orders"}}
            client.request("tools/call", params, mcp_protocol_version=header)
            client.request("tools/list", {}, mcp_protocol_version=header)


# -- tools that return a type ------------------------------------------------------------------------------


def choose(ctx: Context, subject: str) -> Size:
    """Ask for a size."""
    found: Size = ctx.elicit("size", f"How large is {subject}?", Size)
    return found


async def choose_later(ctx: AsyncContext, subject: str) -> Size:
    """Ask for a size, and wait."""
    return await ctx.elicit("size", f"How large is {subject}?", Size)


def smallest(subject: str) -> Size:
    """Return a size without asking."""
    return Size(vcpus=1)


def up(size: Literal["tiny", "huge"]) -> dict[str, Literal["tiny", "huge"]]:
    """Return what is chosen."""
    return {"size": size}


def down(size: Literal["huge", "tiny"]) -> dict[str, Literal["huge", "tiny"]]:
    """Return what is chosen in the other order."""
    return {"size": size}


def _register(server: Server, world: World) -> None:
    for function in (choose, choose_later, smallest, up, down):
        server.tool(function)
    channels: tuple[tuple[Any, ...], ...] = (("page",), ("app",), ("model", "page"), ())
    for each in channels:
        server.tool("_".join(["choose", *each, "only"]), channels=each)(choose)
    server.tool("choose_in_task", task="optional")(choose)


def _list(client: str, world: World) -> None:
    for settings in (TASKS, {}):
        functions.connected(_register, client, settings, world).request("tools/list", {})
    if KINDS[client].is_legacy:  # its session identifies an anonymous caller
        opened = functions.connected(_register, client, {**TASKS, "MCP_AUTH_MODE": "none"}, world)
        opened.another(mode="none", person=None).request("tools/list", {})


# -- what changes between rounds -----------------------------------------------------------------------------


def _between_rounds() -> Iterator[Case]:
    for later in ("shows forms and URLs", "declares nothing"):
        yield Case(f"state: a default was used, then the client {later}", _other_client, later)
    for seconds in (4, 9):
        yield Case(f"state: a clock {seconds} s behind, across an hour", _slow_clock, seconds)
    yield Case("function: a sleep outside of a task", run, ("step", "sleep"))
    yield Case("function: a task in a tool without tasks", run, ("step", "task"))
    for end, task in {"": "long task", ", past its end": "task"}.items():
        naps = (task, "long sleep", "step")
        yield Case(f"task: of a queue, sleeps for 2,000 s{end}", play_acts, naps, (work, poll), QUEUED_TASKS)


def _other_client(later: str, world: World) -> None:
    conversation = talk(world, "default", "step", "url", "choice", client="shows URLs only")
    response = conversation.call()
    conversation.client = conversation.client.another(kind=KINDS[later])
    conversation.go_on(response)


def _slow_clock(seconds: float, world: World) -> None:
    conversation = talk(world, "form", "choice")
    world.clock.sleep(3_002)
    response = conversation.call()
    world.clock.now -= seconds
    conversation.go_on(response)


def _refuse(value: str) -> str:
    if value == "text":
        raise ValueError(f"{value}: secret-4711 is taken")
    return value


class Checked(BaseModel):
    """A form with a validator of the author's."""

    name: Annotated[str, AfterValidator(_refuse)] = "text"


def validated(ctx: Context, subject: str) -> str:
    name: str = ctx.elicit("shade", "Which name?", Checked).name
    return name


def only_the_user(ctx: Context, subject: str) -> str:
    color: str = ctx.elicit("color", "Which?", Literal["red", "blue"], default="red")
    return f"{color} {ctx.elicit('sure', 'Sure?', bool, default=False, user_only=True)}"


def _functions() -> Iterator[Case]:
    clients: Mapping[str, tuple[str, ...] | None] = {
        "shows forms and URLs": None,
        "declares nothing": ("model", "default"),
        "2025-11-25, declares nothing": ("page", "default"),
    }
    client = "shows forms and URLs"
    yield Case(
        f"function: validated, client {client}", functions.converse, functions.tool(validated), client, {}
    )
    for client, channels in clients.items():
        register = functions.tool(only_the_user, channels=channels)
        yield Case(f"function: only the user, client {client}", functions.converse, register, client, TASKS)
