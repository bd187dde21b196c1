"""Deployments with audit records: the lines of each kind of operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corpus.cases import tasks
from corpus.cases.front_door import FLOW, TASK_FLOW, deployed_door
from corpus.cases.parked import call as call_again
from corpus.cases.parked import in_view, page, play_acts, submit
from corpus.conversation import Conversation, talk
from corpus.deployment import QUEUED_TASKS, TASKS, World
from corpus.full_server import ADD, Step, ask, call, complete, deployed_full
from corpus.recording import Case

MODES: Final = {
    "principal": {"MCP_AUDIT": "principal:corpus-audit"},
    "hash": {"MCP_AUDIT": "hash:corpus-audit"},
}
BODIES: Final[Mapping[str, tuple[str, ...]]] = {
    "rounds": ("form", "step", "choice", "other step"),
    "a broken step": ("form", "broken step"),
    "a refusal": ("refusal",),
    "an exception": ("step", "exception"),
    "a default": ("default", "step"),
    "a URL": ("url", "step"),
    "sampling": ("sampling", "step"),
    "a task": ("form", "task", "confirm", "step"),
    "a task that fails": ("task", "exception"),
}
FEATURE_STEPS: Final[Mapping[str, Step]] = {
    "a call": ADD,
    "wrong arguments": call("add", a="secret-4711"),
    "an unknown tool": call("none"),
    "missing scopes": call("drop", name="x"),
    "a resource": ask("resources/read", uri="docs://guide"),
    "a list": ask("tools/list"),
    "an unknown method": ask("x/y"),
    "a completion": complete("play"),
}


def cases() -> Iterator[Case]:
    audit = MODES["hash"]
    for name, body in BODIES.items():
        yield Case(f"audit: hash, {name}", _run, body, audit)
    yield Case("audit: hash, an anonymous caller", _step, ADD, audit, mode="none")
    audit = MODES["principal"]
    yield Case("audit: principal, rounds", _run, BODIES["rounds"], audit)
    for name, step in FEATURE_STEPS.items():
        yield Case(f"audit: {name}", _step, step, audit)
    yield Case("audit: no caller", _step, ADD, audit, person=None)
    for client, *acts in (
        ("declares nothing", page, submit, call_again, call_again),
        ("2025-11-25, declares nothing", page, submit, call_again, call_again),
        ("2025-11-25, shows apps", submit, submit),
        ("shows apps", in_view, call_again),
    ):
        options: dict[str, Any] = {"client": client, "channels": ("app", "page"), "settings": audit}
        yield Case(f"audit: parked call of the client {client}", play_acts, ("form", "step"), acts, **options)
    for name in (
        "asks, and is answered",
        "is cancelled while it asks",
        "expires before it runs",
        "belongs to somebody else",
        "loses each of its workers",
        "loses its workers until it is abandoned",
        "gets a malformed answer",
        "loses a worker in a step",
    ):
        body, task_acts = tasks.STORIES[name]
        yield Case(f"audit: a task of a queue {name}", tasks.play_acts, body, task_acts, QUEUED_TASKS | audit)
    yield Case("audit: PutLogEvents number 2 fails with AccessDeniedException", _unwritten, audit)
    yield Case("audit: through a front door", _front_door, FLOW, audit)
    yield Case("audit: a task through a front door", _front_door, TASK_FLOW, audit)


def _run(body: tuple[str, ...], audit: Mapping[str, str], world: World) -> None:
    task = "optional" if "task" in body else None
    client = "answers everything, follows tasks"
    settings = {**audit, **(TASKS if task else {})}
    talk(world, *body, client=client, task=task, mode="jwt", settings=settings).run()


def _step(step: Step, audit: Mapping[str, str], world: World, **options: Any) -> None:
    step(deployed_full(world, settings=audit, **{"mode": "jwt", **options}))


def _unwritten(audit: Mapping[str, str], world: World) -> None:
    conversation = talk(world, "step", "form", mode="jwt", settings=dict(audit))
    world.account.fail("logs", "PutLogEvents", "AccessDeniedException", 400, skip=1)
    conversation.run()
    world.account.recover()
    conversation.run()


def _front_door(feature: Any, audit: Mapping[str, str], world: World) -> None:
    client = deployed_door(world, feature, settings=audit, client="answers everything, follows tasks")
    Conversation(client).run()
    ADD(client)
    call("none")(client)
