"""Record a case: run it in a world of its own, and replace what differs from run to run."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from corpus.deployment import World, opened_world
from corpus.golden import encode
from corpus.placeholders import Placeholders

CASES: Final = Path(__file__).with_name("cases")


class Case:
    """A case: a name in words, and what happens in its world, which `play` takes after these arguments."""

    def __init__(self, name: str, play: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        self.name = name
        self.run: Callable[[World], Any] = partial(play, *arguments, **options)


@cache
def all_cases() -> tuple[Case, ...]:
    """Return the cases of each module in `cases`. Their names differ."""
    modules = [import_module(f"corpus.cases.{path.stem}") for path in sorted(CASES.glob("*.py"))]
    found = tuple(case for module in modules for case in module.cases())
    names = [case.name for case in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found


def record(case: Case) -> str:
    """Run a case, and return its record as JSON."""
    with opened_world() as world:
        try:
            case.run(world)
            world.account.recover()
        except Exception as error:
            error.add_note(f"in the case {case.name!r}")
            raise
        rows = world.account.rows()
        exchanges = world.exchanges
    placeholders = Placeholders(world.clock.drawn)
    recorded = {"case": case.name, "exchanges": placeholders.replace(exchanges)}
    if rows:
        recorded["rows"] = placeholders.ordered(rows)
    if placeholders.opened:
        recorded["inside"] = placeholders.opened
    return encode(recorded)
