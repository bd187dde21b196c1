"""What clients do with states: repeat, change, keep and share them; and how keys protect them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpus.aws_account import SIGNING_KEY, private_key
from corpus.cases import asking
from corpus.cases.asking import TABLES, play
from corpus.client_kinds import KINDS
from corpus.conversation import run, talk
from corpus.deployment import World
from corpus.deviations import DEVIATIONS
from corpus.pairs import Combination, all_pairs
from corpus.recording import Case

CLIENTS: Final = (
    *("shows forms and URLs", "answers everything, follows tasks"),
    *("claude.ai with forms, follows tasks", "2025-11-25 with tasks of SEP-2322"),
)
DIMENSIONS: Final[Mapping[str, Any]] = {
    "deviation": tuple(DEVIATIONS),
    "client": CLIENTS,
    "asks": ("form", "two forms", "url", "default"),
    "around": ("steps around", "another question after", "a task after", "a broken step after"),
    "feature": ("tool", "async tool", "prompt", "resource"),
    "task": (None, "optional"),
    "table": tuple(TABLES),
    "mode": ("none", "jwt"),
    "answer": ("accept", "decline"),
}


def is_possible(chosen: Combination) -> bool:
    kind = KINDS[chosen.get("client", "shows forms and URLs")]
    if kind.augments_tasks and chosen.get("feature") in ("prompt", "resource"):
        return False
    if not kind.is_legacy and not asking.is_asked(kind, chosen.get("asks")):
        return False
    deviation, changing = chosen.get("deviation", ""), ("form", "two forms")
    if "has changed" in deviation and chosen.get("asks", "form") not in changing:
        return False
    if "another caller" in deviation and chosen.get("mode") == "none":
        return False
    return asking.is_possible(chosen)


def cases() -> Iterator[Case]:
    for chosen in all_pairs(DIMENSIONS, is_possible):
        more = {**chosen, "channels": "usual channels", "source": "http_api"}
        task = "" if chosen["task"] is None else f", a task is {chosen['task']}"
        name = (
            f"state: client {chosen['client']} {chosen['deviation']}; {chosen['feature']} asks "
            f"{chosen['asks']} with {chosen['around']}{task}; {chosen['table']}; {chosen['mode']}; "
            f"answer: {chosen['answer']}"
        )
        yield Case(name, play, more)
    yield from _kept()
    yield from _keys()


def _kept() -> Iterator[Case]:
    for rounds in ("1", "2"):
        for task in (None, "optional"):
            for client in (
                "shows forms and URLs",
                "answers everything, follows tasks",
                "claude.ai with forms",
            ):
                settings = {"MCP_MAX_ROUNDS": rounds, **(TABLES["a table"] if task else {})}
                body = ("form", "step", "choice", "other step", "confirm")
                name = f"state: client {client}, at most {rounds} rounds{' or a task' if task else ''}"
                yield Case(name, run, body, client=client, task=task, settings=settings)
    yield Case("state: a state of 70,000 characters", run, ("large step", "form"))
    for size in (15_000, 40_000):
        yield Case(f"state: a step of {size} characters", _large, size)


def _large(size: int, world: World) -> None:
    world.notes["size"] = size
    talk(world, "sized step", "form").run()


DELEGATED: Final = {"MCP_STATE_SIGNING": "delegated"}
UNENCRYPTED: Final = {"MCP_STATE_ENCRYPTION": "disabled", "MCP_STATE_ENCRYPTION_KEY_ARN": ""}


def _keys() -> Iterator[Case]:
    spki = private_key(1).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pinned = {"MCP_STATE_PUBLIC_KEYS": f"{SIGNING_KEY}:{b64encode(spki).decode()}"}
    deployments = {
        "direct": {},
        "delegated": DELEGATED,
        "unencrypted": UNENCRYPTED,
        "delegated, unencrypted": DELEGATED | UNENCRYPTED,
        "pinned keys": pinned,
        "another public key": {"MCP_STATE_PUBLIC_KEYS": f"other:{b64encode(spki).decode()}"},
    }
    for name, settings in deployments.items():
        yield Case(f"keys: {name}", run, ("form", "step", "choice"), settings=settings)
    for kind in ("direct", "delegated"):
        options: dict[str, Any] = {"mode": "jwt", "settings": deployments[kind]}
        yield Case(f"keys: {kind}, a signed link", run, ("signed link", "form"), **options)
    yield Case("keys: a signed link of an anonymous caller", run, ("signed link", "form"))
