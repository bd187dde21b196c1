"""Record a case: run it in a world of its own, and replace what differs from run to run."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corpus.deployment import World, opened_world
from corpus.placeholders import Placeholders


@dataclass(frozen=True)
class Case:
    """A case: a name in words, and what happens in its world."""

    name: str
    run: Callable[[World], Any]


def record(case: Case) -> dict[str, Any]:
    """Run a case, and return its record."""
    with opened_world() as world:
        case.run(world)
        rows = world.account.rows()
        exchanges = world.exchanges
    placeholders = Placeholders(world.clock.drawn)
    recorded = {"case": case.name, "exchanges": [placeholders.replace(each) for each in exchanges]}
    if rows:
        recorded["rows"] = placeholders.ordered(rows)
    if placeholders.opened:
        recorded["inside"] = placeholders.opened
    return json.loads(json.dumps(recorded))  # type: ignore[no-any-return]
