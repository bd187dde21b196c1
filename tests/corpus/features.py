"""The features under test: one function whose body is a list of operations that the case chooses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from corpus.clock import START
from corpus.deployment import World
from mcp_roundtrip import AsyncContext, Context, Elicit, Retry, Server, ToolError

URL = "https://pay.example.com/order"


class Size(BaseModel):
    """A form of several fields."""

    vcpus: int = Field(ge=1, le=16, description="Virtual CPUs")
    tier: Literal["dev", "prod"] = "dev"
    note: str | None = Field(default=None, max_length=40)


@dataclass(frozen=True)
class Feature:
    """What is registered, and what its function does, in order."""

    body: tuple[str, ...]
    kind: str = "tool"
    is_async: bool = False
    task: Literal["optional", "required"] | None = None
    channels: tuple[Any, ...] | None = None
    requires: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    dialect: bool = False


def make_server(feature: Feature, world: World) -> Server:
    dialect: Literal["sep-2322"] | None = "sep-2322" if feature.dialect else None
    server = Server("corpus", namespaced_requests=True, legacy_tasks=dialect)
    register(server, feature, world)
    return server


def register(server: Server, feature: Feature, world: World) -> None:
    """Register the feature under the name `play`, or the URI template `play://{subject}`."""

    def play(ctx: Context, subject: str) -> str:
        return ", ".join(str(OPERATIONS[each](ctx, world, subject)) for each in feature.body)

    async def play_async(ctx: AsyncContext, subject: str) -> str:
        done = []
        for each in feature.body:
            value = OPERATIONS[each](ctx, world, subject)
            done.append(await value if inspect.isawaitable(value) else value)
        return ", ".join(map(str, done))

    function: Callable[..., Any] = play_async if feature.is_async else play
    shared: dict[str, Any] = {"requires": feature.requires, "scopes": feature.scopes}
    if feature.kind == "prompt":
        server.prompt("play", description="Plays.", **shared)(function)
    elif feature.kind == "resource":
        server.resource("play://{subject}", name="play", description="Plays.", **shared)(function)
    else:
        more: dict[str, Any] = {"task": feature.task, "channels": feature.channels}
        server.tool("play", description="Plays.", **shared, **more)(function)


Operation = Callable[[Any, World, str], Any]


def _effect(world: World, name: str, takes_s: float = 0) -> Callable[[], str]:
    def effect() -> str:
        world.clock.sleep(takes_s)
        runs = world.notes[name] = world.notes.get(name, 0) + 1
        return f"{name} {runs}"

    return effect


def _step(name: str, takes_s: float = 0, **options: Any) -> Operation:
    return lambda ctx, world, subject: ctx.step(name, _effect(world, name, takes_s), **options)


def _flaky(failures: int, retry: Retry | None) -> Operation:
    def operation(ctx: Any, world: World, subject: str) -> Any:
        def attempt() -> str:
            world.notes["attempts"] = world.notes.get("attempts", 0) + 1
            if world.notes["attempts"] <= failures:
                raise ConnectionError("the shop is closed: secret-4711")
            return "sold"

        return ctx.step("buy", attempt, **({} if retry is None else {"retry": retry}))

    return operation


def _killed(world: World, times: int = 1) -> Callable[[], str]:
    def effect() -> str:
        world.notes["kills"] = world.notes.get("kills", times) - 1
        if world.notes["kills"] >= 0:
            world.kill()
        return "charged"

    return effect


def _raise(error: Exception) -> Operation:
    def operation(ctx: Any, world: World, subject: str) -> None:
        raise error

    return operation


def _two_forms(ctx: Any, world: World, subject: str) -> Any:
    size = Elicit("size", f"How large is {subject}?{world.notes.get('again', '')}", Size)
    return ctx.ask(size, Elicit("sure", "Are you sure?", bool))


def _pass_time(seconds: float) -> Operation:
    def operation(ctx: Any, world: World, subject: str) -> str:
        world.clock.sleep(seconds)
        return f"waited {seconds}"

    return operation


def _signed_link(ctx: Any, world: World, subject: str) -> Any:
    return ctx.signed_link("link", URL)


_MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Summarize it."}}]
_TOOL = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}

OPERATIONS: Mapping[str, Operation] = {
    "form": lambda ctx, world, subject: ctx.elicit(
        "size", f"How large is {subject}?{world.notes.get('again', '')}", Size
    ),
    "choice": lambda ctx, world, subject: ctx.elicit("color", "Which color?", Literal["red", "blue"]),
    "default": lambda ctx, world, subject: ctx.elicit(
        "shade", "Which shade?", Literal["red", "blue"], default="blue"
    ),
    "confirm": lambda ctx, world, subject: ctx.confirm("delete", f"Delete {subject}?"),
    "url": lambda ctx, world, subject: ctx.elicit_url(
        "pay", f"Pay for {subject}", URL, done=lambda: bool(world.notes.get("paid"))
    ),
    "url once a round": lambda ctx, world, subject: ctx.elicit_url(
        "pay", f"Pay for {subject}", URL, done=lambda: bool(world.notes.get("paid")), poll_interval_ms=None
    ),
    "url that stays open": lambda ctx, world, subject: ctx.elicit_url(
        "pay", f"Pay for {subject}", URL, done=lambda: world.clock.now > START + 100
    ),
    "other url": lambda ctx, world, subject: ctx.elicit_url(
        "sign", f"Sign for {subject}", f"{URL}/sign", done=lambda: bool(world.notes.get("paid"))
    ),
    "sampling": lambda ctx, world, subject: ctx.sample("summary", _MESSAGES, max_tokens=100),
    "sampling with tools": lambda ctx, world, subject: ctx.sample(
        "summary", _MESSAGES, max_tokens=100, tools=[_TOOL]
    ),
    "roots": lambda ctx, world, subject: ctx.list_roots(),
    "request": lambda ctx, world, subject: ctx.request("approval", "com.example/approval", {"what": subject}),
    "two forms": _two_forms,
    "step": _step("charge"),
    "other step": _step("ship"),
    "slow step": _step("slow", 12),
    "other slow step": _step("slower", 12),
    "third slow step": _step("slowest", 12),
    "long step": _step("long", 27.5),
    "once": _step("once", at_most_once=True),
    "retried step": _flaky(1, Retry(attempts=3, delay_ms=1_000)),
    "slowly retried step": _flaky(1, Retry(attempts=3, delay_ms=90_000)),
    "step of 400 s": _step("first", 400),
    "other step of 400 s": _step("second", 450),
    "exhausted step": _flaky(9, Retry(attempts=2, delay_ms=100)),
    "broken step": _flaky(9, None),
    "now": lambda ctx, world, subject: ctx.now("now"),
    "uuid": lambda ctx, world, subject: ctx.uuid("uuid"),
    "random": lambda ctx, world, subject: ctx.random("random"),
    "signed link": _signed_link,
    "sleep": lambda ctx, world, subject: ctx.sleep("pause", 60_000),
    "long sleep": lambda ctx, world, subject: ctx.sleep("nap", 2_000_000),
    "very long step": _step("very long", 40),
    "step of 70 s": _step("too long", 70),
    "step that is killed": lambda ctx, world, subject: ctx.step("charge", _killed(world)),
    "step that is always killed": lambda ctx, world, subject: ctx.step("charge", _killed(world, 99)),
    "once, killed": lambda ctx, world, subject: ctx.step("charge", _killed(world), at_most_once=True),
    "status message": lambda ctx, world, subject: ctx.progress(1, 4, "x" * 5_000),
    "step of 400 KB": lambda ctx, world, subject: ctx.step("large", lambda: "x" * 400_000),
    "result of 300 KB": lambda ctx, world, subject: "x" * 300_000,
    "result of 6 MB": lambda ctx, world, subject: "x" * 6_000_000,
    "task": lambda ctx, world, subject: ctx.run_as_task(ttl_ms=600_000),
    "long task": lambda ctx, world, subject: ctx.run_as_task(ttl_ms=86_400_000),
    "checkpoint": lambda ctx, world, subject: ctx.checkpoint(),
    "early checkpoint": lambda ctx, world, subject: ctx.checkpoint(needs_ms=60_000),
    "many notifications": lambda ctx, world, subject: [ctx.log("info", "x" * 10_000) for _ in range(120)],
    "progress": lambda ctx, world, subject: ctx.progress(1, 2, "half"),
    "log": lambda ctx, world, subject: ctx.log("info", {"subject": subject}),
    "time passes": _pass_time(27.5),
    "refusal": _raise(ToolError("There is none left.")),
    "exception": _raise(RuntimeError("secret-4711")),
    "large result": lambda ctx, world, subject: "x" * 1_200_000,
    "sized step": lambda ctx, world, subject: ctx.step("sized", lambda: "x" * world.notes["size"]),
    "large step": lambda ctx, world, subject: ctx.step("large", lambda: "x" * 70_000),
}
"""Operation -> what the function does, with a Context or an AsyncContext."""

ASKING: Sequence[str] = (
    *("form", "default", "confirm", "url", "sampling", "sampling with tools", "roots", "request"),
    "two forms",
)
