"""Calls that run out of time or out of places, with every kind of client, chosen pairwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corpus.cases.asking import CHANNELS, TABLES
from corpus.client_kinds import KINDS
from corpus.conversation import talk
from corpus.deployment import TASKS, World
from corpus.pairs import Combination, all_pairs
from corpus.recording import Case

BODIES: Final[Mapping[str, tuple[str, ...]]] = {
    "slow steps": ("slow step", "other slow step", "third slow step", "step"),
    "a long step before a question": ("long step", "form", "step"),
    "a question before a long step": ("form", "long step", "other step"),
    "time that passes": ("time passes", "step"),
    "a checkpoint": ("step", "time passes", "checkpoint", "other step"),
    "a slow step that is retried": ("slow step", "retried step", "long step", "step"),
    "a URL that stays open": ("url that stays open", "step"),
    "a URL that is asked once a round": ("url once a round", "step"),
    "a task after a long step": ("long step", "task", "step"),
    "a task before a question": ("step", "task", "form", "other step"),
}
NUMBERS: Final[Mapping[str, Mapping[str, str]]] = {
    "usual limits": {},
    "at most 1 open task": {"MCP_MAX_OPEN_TASKS": "1"},
    "at most 2 rounds": {"MCP_MAX_ROUNDS": "2"},
    "at most 1 round and 1 open task": {"MCP_MAX_ROUNDS": "1", "MCP_MAX_OPEN_TASKS": "1"},
}

CLIENTS: Final = (
    *("answers everything, follows tasks", "declares nothing", "shows apps, follows tasks"),
    *("claude.ai with forms, follows tasks", "claude.ai declares nothing"),
    *("2025-11-25, shows apps", "2025-11-25 with tasks of SEP-2322"),
)

DIMENSIONS: Final[Mapping[str, Any]] = {
    "client": CLIENTS,
    "body": tuple(BODIES),
    "limits": tuple(NUMBERS),
    "occupied": (False, True),
    "task": (None, "optional", "required"),
    "channels": tuple(CHANNELS),
    "table": tuple(TABLES),
    "feature": ("tool", "async tool"),
    "mode": ("none", "jwt"),
}


def is_possible(chosen: Combination) -> bool:
    if "a task" in chosen.get("body", "") and ("task" in chosen and chosen["task"] is None):
        return False
    if chosen.get("occupied") and (
        chosen.get("table") == "no table" or "1 open" not in chosen.get("limits", "1 open")
    ):
        return False
    kind = KINDS[chosen.get("client", "only follows tasks")]
    if chosen.get("task") == "required" and not kind.has_tasks:
        return False
    if kind.augments_tasks and chosen.get("task", "optional") is None:
        return False
    return not (chosen.get("task") and chosen.get("table") == "no table")


def cases() -> Iterator[Case]:
    for chosen in all_pairs(DIMENSIONS, is_possible):
        task = "" if chosen["task"] is None else f", a task is {chosen['task']}"
        occupied = ", all occupied" if chosen["occupied"] else ""
        name = (
            f"time: {chosen['feature']} with {chosen['body']}{task}; {chosen['channels']}, "
            f"{chosen['table']}; {chosen['limits']}{occupied}; client {chosen['client']}; {chosen['mode']}"
        )
        yield Case(name, _play, chosen)


def _play(chosen: Mapping[str, Any], world: World) -> None:
    settings = {**NUMBERS[chosen["limits"]], **TABLES[chosen["table"]]}
    conversation = talk(
        world,
        *BODIES[chosen["body"]],
        is_async=chosen["feature"].startswith("async"),
        channels=CHANNELS[chosen["channels"]],
        settings=settings,
        **{name: chosen[name] for name in ("client", "task", "mode")},
    )
    if chosen["occupied"]:
        occupy(world, chosen["mode"], settings)
    conversation.run()


def occupy(world: World, mode: str, settings: Mapping[str, str]) -> None:
    """Occupy the caller's places with a task that waits for an answer."""
    assert settings.keys() >= TASKS.keys()
    options: dict[str, Any] = {"task": "required", "mode": mode, "settings": dict(settings)}
    other = talk(world, "task", "confirm", client="answers everything, follows tasks", **options)
    other.call()
    world.account.functions["corpus_play"] = other.client.function.invoked
