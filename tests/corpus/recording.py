"""Record a case: run it in a world of its own, and replace what differs from run to run."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from corpus.deployment import World, opened_world
from corpus.placeholders import Placeholders


class Case:
    """A case: a name in words, and what happens in its world, which `play` takes after these arguments."""

    def __init__(self, name: str, play: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        self.name = name
        self.run: Callable[[World], Any] = partial(play, *arguments, **options)


def record(case: Case) -> dict[str, Any]:
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
