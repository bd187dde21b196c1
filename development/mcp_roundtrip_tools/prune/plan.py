"""Which versions of a worker are kept, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A published version of a function. `code_bytes` is the size of its package."""

    function: str
    arn: str
    number: int
    published: str
    code_bytes: int


@dataclass(frozen=True, slots=True)
class Use:
    """What needs versions, by their ARN.

    `aliases` has the versions to which an alias sends traffic, `tools` those that a deployed tool names for
    its new tasks, `open_tasks` the number of open tasks of each version.
    """

    aliases: frozenset[str]
    tools: frozenset[str]
    open_tasks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A version with the reason to keep it, or None if nothing needs it."""

    version: Version
    reason: str | None


def plan(versions: Iterable[Version], use: Use) -> list[Row]:
    """Return every version with its reason, ordered by function and number."""
    ordered = sorted(versions, key=lambda each: (each.function, each.number))
    newest = {each.function: each.number for each in ordered}
    return [Row(each, _reason(each, newest[each.function], use)) for each in ordered]


def _reason(version: Version, newest: int, use: Use) -> str | None:
    if tasks := use.open_tasks.get(version.arn):
        return f"{tasks} open task{'s' if tasks > 1 else ''}"
    if version.arn in use.aliases:
        return "an alias"
    if version.arn in use.tools:
        return "new tasks of the tool"
    # A deployment in progress publishes a version before anything names it.
    return "the newest version" if version.number == newest else None


def removable(rows: Iterable[Row]) -> list[Version]:
    """Return the versions that nothing needs."""
    return [row.version for row in rows if row.reason is None]
