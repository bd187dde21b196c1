"""States and rows that an earlier version wrote, and with which this version continues."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.deployment import World
from corpus.kept import SITUATIONS, load, resume
from corpus.recording import Case


def cases() -> Iterator[Case]:
    for name in load():
        yield Case(f"earlier version: {name}", _resume, name)


def _resume(name: str, world: World) -> None:
    resume(world, SITUATIONS[name], load()[name])
