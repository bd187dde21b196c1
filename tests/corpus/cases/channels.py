"""Tools whose author orders the channels, lists of such tools, and calls of anonymous sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from corpus.cases import functions
from corpus.cases.parked import FORM, Waiting, in_view, submit
from corpus.client_kinds import KINDS
from corpus.conversation import talk
from corpus.deployment import TASKS, World
from corpus.features import Size
from corpus.pairs import Combination, all_pairs
from corpus.recording import Case
from mcp_roundtrip import AsyncContext, Context, Server

ORDERS: Final = (
    *(("model", "page"), ("model", "app"), ("default", "model"), ("default", "page"), ("default", "app")),
    *(("page", "app"), ("page", "model", "app", "default"), ("default", "model", "page", "app")),
)
"""Channels in another order than the usual one, which is app, page, model, default."""

BODIES: Final[Mapping[str, tuple[str, ...]]] = {
    "a form": ("form", "step"),
    "with a default": ("default", "step"),
    "after a step": ("step", "default", "other step"),
    "with a default, then a form": ("default", "form"),
}
CLIENTS: Final = ("declares nothing", "shows apps, follows tasks", "2025-11-25, shows apps")
LISTING: Final = (
    *("shows forms and URLs, follows tasks", "samples and has roots", "shows apps", "declares nothing"),
    *("2025-11-25, shows apps", "2025-06-18, declares nothing", "claude.ai declares nothing"),
)
DIMENSIONS: Final[Mapping[str, Any]] = {
    "order": ORDERS,
    "client": CLIENTS,
    "asks": tuple(BODIES),
    "table": (True, False),
    "mode": ("jwt", "none"),
    "is_async": (False, True),
}


def cases() -> Iterator[Case]:
    for chosen in all_pairs(DIMENSIONS, lambda _: True):
        name = (
            f"channels: {' before '.join(chosen['order'])}; {'async tool' if chosen['is_async'] else 'tool'} "
            f"asks {chosen['asks']}; {'a table' if chosen['table'] else 'no table'}; "
            f"client {chosen['client']}; {chosen['mode']}"
        )
        yield Case(name, _ordered, chosen)
    for name, session in SESSIONS.items():
        yield Case(f"channels: two anonymous sessions answer {name}", _two_sessions, *session)
    for client in LISTING:
        yield Case(f"channels: list of tools that return a type, client {client}", _list, client)


def _ordered(chosen: Combination, world: World) -> None:
    conversation = talk(
        world,
        *BODIES[chosen["asks"]],
        client=chosen["client"],
        channels=chosen["order"],
        mode=chosen["mode"],
        is_async=chosen["is_async"],
        settings=TASKS if chosen["table"] else {},
    )
    conversation.client.request("tools/list", {})
    conversation.run()


def _through_model(waiting: Waiting) -> None:
    waiting.talk.model_answers["size"] = {"vcpus": 3}


LATER: Final = ("step", "form", "other step")
SESSIONS: Final[Mapping[str, tuple[tuple[str, ...], str, tuple[str, ...], Callable[[Waiting], Any]]]] = {
    "on their pages": (LATER, "2025-11-25, declares nothing", ("page",), submit),
    "in their views": (LATER, "2025-11-25, shows apps", ("app",), in_view),
    "through their models": (FORM, "2025-11-25, declares nothing", ("model",), _through_model),
    "through their models, later": (LATER, "2025-11-25, declares nothing", ("model", "page"), _through_model),
}
"""How the users of two sessions answer -> the body of the tool, their client, channels, and an answer."""


def _two_sessions(
    body: tuple[str, ...],
    client: str,
    channels: tuple[str, ...],
    answer: Callable[[Waiting], Any],
    world: World,
) -> None:
    """Make one call in two sessions; the user of the second one answers first."""
    options: dict[str, Any] = {"client": client, "channels": channels, "mode": "none"}
    first, second = Waiting(world, body, **options), Waiting(world, body, **options)
    answer(second)
    first.call()
    second.call()
    answer(first)
    first.call()
    first.call()
    second.call()


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
