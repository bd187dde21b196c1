"""Direct invocations: what their callers send besides calls that ask, which the choice of pairs has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corpus.cases import tasks
from corpus.cases.requests import PARAMS, body_of, initialize, raw
from corpus.conversation import run
from corpus.deployment import TASKS
from corpus.deviations import DEVIATIONS
from corpus.full_server import Step, ask, call, case, complete
from corpus.recording import Case

STEPS: Final[Mapping[str, Step]] = {
    "discovery": ask("server/discover"),
    "a list of prompts": ask("prompts/list"),
    "a list of resources": ask("resources/list"),
    "a list of templates": ask("resources/templates/list"),
    "a resource": ask("resources/read", uri="docs://guide"),
    "bytes": ask("resources/read", uri="docs://bytes"),
    "an unknown resource": ask("resources/read", uri="docs://none"),
    "a name outside of ASCII": call("größe"),
    "a header that repeats an argument": call("region", place="eu"),
    "wrong arguments": call("add", a="secret-4711"),
    "an unknown tool": call("nothing"),
    "missing scopes": call("drop", name="x"),
    "an unknown method": ask("x/y"),
    "a subscription": ask("subscriptions/listen", notifications={"toolsListChanged": True}),
    "a completion": complete("play"),
    "initialize": initialize("2025-11-25"),
    "an unknown protocol version": raw(body_of({"io.modelcontextprotocol/protocolVersion": "2027-01-01"})),
    "a number as the name": raw(body_of(params={**PARAMS, "name": 7})),
    "a lone surrogate": raw(body_of(id="\ud800")),
    "a notification": raw(body_of(id="absent", method="notifications/cancelled")),
}
STORIES: Final = (
    *("asks, and is answered", "is cancelled while it asks", "gets a malformed answer"),
    *("fails with a message", "has a result of 300 KB", "loses a worker in a step"),
)
BODIES: Final[Mapping[str, tuple[str, ...]]] = {
    "a long step": ("long step", "other step"),
    "slow steps": ("slow step", "other slow step", "third slow step", "form"),
    "notifications": ("progress", "log", "form", "progress"),
    "an exception": ("step", "exception"),
    "branches": ("branches", "step"),
}


def cases() -> Iterator[Case]:
    for name, step in STEPS.items():
        yield case(f"direct invocation, {name}", step, source="direct")
    few = {"MCP_MAX_BODY_BYTES": "400"}
    long = call("add", a=1, text="x" * 300)
    yield case("direct invocation, body over the limit", long, source="direct", settings=few)
    values = {"MCP_MAX_JSON_VALUES": "20"}
    many = call("add", a=1, b=[*range(30)])
    yield case("direct invocation, JSON values over the limit", many, source="direct", settings=values)
    for deviation in DEVIATIONS:
        if "another caller" not in deviation:
            options: dict[str, Any] = {"source": "direct", "deviation": deviation}
            yield Case(f"state: a direct caller {deviation}", run, ("form", "step", "choice"), **options)
    for name in STORIES:
        body, acts = tasks.STORIES[name]
        options = {"mode": "none", "source": "direct"}
        yield Case(f"task: of a direct caller, {name}", tasks.play_acts, body, acts, TASKS, **options)
    for name, body in BODIES.items():
        for client in ("shows forms and URLs", "declares nothing"):
            options = {"source": "direct", "is_notified": "log" in body, "settings": TASKS}
            title = f"time: a direct caller with {name}, client {client}"
            yield Case(title, run, body, client=client, is_async="branches" in body, **options)
