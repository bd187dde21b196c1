"""Calls that ask: every way to ask with every kind of client, chosen pairwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corpus import callers
from corpus.answers import ANSWERS
from corpus.client_kinds import KINDS, Kind
from corpus.conversation import talk
from corpus.deployment import QUEUED_TASKS, TASKS, World
from corpus.features import ASKING
from corpus.pairs import Combination, all_pairs
from corpus.recording import Case

CHANNELS: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "usual channels": None,
    "page": ("page",),
    "app": ("app",),
    "model": ("model",),
    "model, then default": ("model", "default"),
    "no channels": (),
}
AROUND: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "without effects": ((), ()),
    "steps around": (("step", "now", "uuid"), ("other step", "random")),
    "a retried step before": (("retried step",), ("other step",)),
    "a broken step after": ((), ("broken step",)),
    "another question after": ((), ("step", "choice", "other step")),
    "a task before": (("task", "step"), ("other step",)),
    "a task after": (("step",), ("task", "other step")),
    "a task that sleeps": (("task", "sleep"), ("step",)),
    "notifications": (("progress", "log"), ("progress",)),
}
"""What a function does besides asking -> the operations before and after the question."""

TABLES: Final[Mapping[str, Mapping[str, str]]] = {"a table": TASKS, "queues": QUEUED_TASKS, "no table": {}}

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "url": ("elicitation", "url"),
    "sampling": ("sampling",),
    "sampling with tools": ("sampling", "tools"),
    "roots": ("roots",),
    "request": ("extensions", "com.example/approval"),
}
"""Question -> the capability with which a client is asked it. The other questions are forms."""

ONLY_CLIENTS: Final = NEEDS.keys() - {"url"}
"""Questions that no page, view or model answers for a client."""

CLIENTS: Final = (
    *("shows forms", "shows URLs only", "answers everything, follows tasks", "samples and has roots"),
    *("only follows tasks", "declares nothing", "shows apps", "shows forms, also in apps"),
    *("claude.ai with forms", "claude.ai declares nothing"),
    *("2025-11-25, shows forms and URLs", "2025-11-25, shows apps", "2025-11-25 with tasks of SEP-2322"),
    "2025-06-18, declares nothing",
)
DIMENSIONS: Final[Mapping[str, Any]] = {
    "client": CLIENTS,
    "asks": ASKING,
    "around": tuple(AROUND),
    "channels": tuple(CHANNELS),
    "feature": ("tool", "async tool", "prompt", "resource"),
    "answer": tuple(ANSWERS),
    "task": (None, "optional", "required"),
    "table": tuple(TABLES),
    "source": callers.SOURCES,
    "mode": tuple(callers.MODES),
}


def is_possible(chosen: Combination) -> bool:
    feature, table, task = chosen.get("feature", "tool"), chosen.get("table"), chosen.get("task")
    source, mode = chosen.get("source"), chosen.get("mode")
    if source and mode and source not in callers.MODES[mode]:
        return False
    if not feature.endswith("tool") and (
        task or chosen.get("channels", "usual channels") != "usual channels"
    ):
        return False
    if "task" in chosen and "task" in chosen.get("around", "") and task is None:
        return False
    return not (task and table == "no table") and ("client" not in chosen or is_possible_for_client(chosen))


def is_possible_for_client(chosen: Combination) -> bool:
    """Return whether the client of a combination reaches what the other values name."""
    kind, around, task = KINDS[chosen["client"]], chosen.get("around", ""), chosen.get("task", "optional")
    if chosen.get("source") == "direct" and kind.is_legacy:
        return False
    if kind.augments_tasks and task is None and chosen.get("feature", "").endswith("tool"):
        return False
    question = chosen.get("asks", "form")
    if question in ONLY_CLIENTS and not (kind.declares(*NEEDS[question]) or "nothing" in chosen["client"]):
        return False
    is_in_task = kind.has_tasks and around in ("a task before", "a task that sleeps")
    if is_in_task and question == "request":
        return False
    if not kind.has_tasks and (task == "required" or around == "a task that sleeps"):
        return False
    return chosen.get("answer", "accept") == "accept" or is_asked(kind, chosen.get("asks"))


def is_asked(kind: Kind, question: str | None) -> bool:
    """Return whether a client is asked a question, or any, by a request that MCP has for it."""
    if kind.is_legacy:
        return False
    return question is None or kind.declares(*NEEDS.get(question, ("elicitation", "form")))


def cases() -> Iterator[Case]:
    for chosen in all_pairs(DIMENSIONS, is_possible):
        yield Case(f"asking: {name_of(chosen)}", play, chosen)


def name_of(chosen: Combination) -> str:
    task = "" if chosen["task"] is None else f", a task is {chosen['task']}"
    return (
        f"{chosen['feature']} asks {chosen['asks']} with {chosen['around']}{task}; {chosen['channels']}, "
        f"{chosen['table']}; client {chosen['client']}; {chosen['mode']} through {chosen['source']}; "
        f"answer: {chosen['answer']}"
    )


def play(chosen: Mapping[str, Any], world: World) -> None:
    before, after = AROUND[chosen["around"]]
    talk(
        world,
        *(*before, chosen["asks"], *after),
        kind=chosen["feature"].removeprefix("async "),
        is_async=chosen["feature"].startswith("async "),
        channels=CHANNELS[chosen["channels"]] if chosen["feature"].endswith("tool") else None,
        settings=TABLES[chosen["table"]],
        deviation=chosen.get("deviation", ""),
        is_notified=chosen["around"] == "notifications",
        **{name: chosen[name] for name in ("client", "mode", "source", "answer", "task")},
    ).run()
