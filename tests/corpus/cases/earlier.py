"""States and rows that earlier versions wrote, and with which every later version has to go on.

`python -m corpus.cases.earlier` adds those of the situations below that have none yet. It never replaces one.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corpus.cases.parked import Waiting, in_view, submit
from corpus.cases.states import DELEGATED, UNENCRYPTED
from corpus.cases.tasks import CLIENT, SIZE, Running
from corpus.conversation import Conversation, talk
from corpus.deployment import TASKS, World
from corpus.recording import Case, record

FILE: Final = Path(__file__).parents[1] / "kept.json.xz"
JOURNAL: Final = ("step", "now", "uuid", "random", "default", "retried step", "form", "other step", "choice")


@dataclass(frozen=True)
class Situation:
    """How a kept state or task is made, and how it continues."""

    begin: Callable[[World], Any]
    go_on: Callable[[World, Mapping[str, Any]], Any]
    """Takes what `begin` has returned, in another world with the same rows."""


def _rounds(*body: str, **options: Any) -> Situation:
    def begin(world: World) -> Any:
        response = talk(world, *body, **options).call()
        answers = {"size": SIZE, "unasked": SIZE}
        return {"state": response["result"]["requestState"], "answers": answers}

    def go_on(world: World, kept: Mapping[str, Any]) -> None:
        world.notes.update({"charge": 1, "attempts": 2})
        conversation = talk(world, *body, **options)
        response = conversation.call(requestState=kept["state"], inputResponses=kept["answers"])
        conversation.go_on(response)

    return Situation(begin, go_on)


def _task(*body: str, works: bool = True, **options: Any) -> Situation:
    def begin(world: World) -> Any:
        running = Running(world, body, TASKS, **options)
        if works:
            running.work()
        return {"task": running.id}

    def go_on(world: World, kept: Mapping[str, Any]) -> None:
        given: dict[str, Any] = {"client": CLIENT, "mode": "jwt", "task": "required", **options}
        conversation: Conversation = talk(world, *body, settings=dict(TASKS), **given)
        world.clock.sleep(100)
        conversation.follow_task(kept["task"])

    return Situation(begin, go_on)


def _parked(
    act: Callable[[Waiting], Any], *body: str, client: str, channels: tuple[str, ...] = ("app", "page")
) -> Situation:
    options: dict[str, Any] = {"client": client, "channels": channels}

    def begin(world: World) -> Any:
        waiting = Waiting(world, body, **options)
        return {"url": waiting.url, "view": waiting.view}

    def go_on(world: World, kept: Mapping[str, Any]) -> None:
        waiting = Waiting(world, body, **options)
        waiting.url, waiting.view = kept["url"], dict(kept["view"])
        act(waiting)
        waiting.call()
        waiting.call()

    return Situation(begin, go_on)


SITUATIONS: Final[Mapping[str, Situation]] = {
    "a state": _rounds(*JOURNAL),
    "a state of a caller": _rounds(*JOURNAL, mode="jwt"),
    "a delegated state": _rounds(*JOURNAL, settings=DELEGATED),
    "a state without encryption": _rounds(*JOURNAL, settings=UNENCRYPTED),
    "a state of a prompt": _rounds("step", "form", "choice", kind="prompt"),
    "a state of an async tool": _rounds("step", "form", "choice", is_async=True),
    "a state of a call that can become a task": _rounds(
        *("step", "form", "task", "other step"), client=CLIENT, task="optional", settings=TASKS, mode="jwt"
    ),
    "a task that was not run": _task("task", "step", works=False),
    "a task that asks": _task("task", "step", "now", "default", "form", "other step"),
    "a task that asks two forms": _task("task", "step", "two forms", "other step"),
    "a task that sleeps": _task("task", "step", "sleep", "other step"),
    "a task that has ended": _task("task", "step"),
    "a task with a large result": _task("task", "result of 300 KB"),
    "a task that has failed": _task("task", "exception"),
    "a task of SEP-2322 that asks": _task("task", "step", "form", client="2025-11-25 with tasks of SEP-2322"),
    "a call on the page": _parked(submit, "step", "form", "other step", client="declares nothing"),
    "a call in a view": _parked(in_view, "step", "form", "other step", client="shows apps"),
    "a call of a legacy client": _parked(
        submit, "step", "form", "other step", client="2025-11-25, declares nothing"
    ),
    "a call out of time": _parked(lambda waiting: None, "long step", "other step", client="declares nothing"),
    "a call through the model": _parked(
        lambda waiting: waiting.talk.model_answers.update(size={"vcpus": 3}),
        "step",
        "form",
        client="2025-06-18, declares nothing",
        channels=("model",),
    ),
}


def load() -> dict[str, Any]:
    """Return what is kept, by the name of its situation."""
    found: dict[str, Any] = json.loads(lzma.decompress(FILE.read_bytes()))
    return found


def keep(situation: Situation) -> dict[str, Any]:
    """Return what a situation leaves behind."""
    kept: dict[str, Any] = {}

    def run(world: World) -> None:
        kept["begun"] = situation.begin(world)
        kept["rows"] = list(world.account.table.items.values())

    record(Case("kept", run))
    return kept


def cases() -> Iterator[Case]:
    for name, kept in load().items():
        yield Case(f"earlier version: {name}", _resume, SITUATIONS[name], kept)


def _resume(situation: Situation, kept: Mapping[str, Any], world: World) -> None:
    world.account.table.items = {(row["pk"]["S"], row["sk"]["S"]): row for row in kept["rows"]}
    situation.go_on(world, kept["begun"])


def main() -> None:
    """Add what is missing."""
    kept = load()
    kept |= {name: keep(each) for name, each in SITUATIONS.items() if name not in kept}
    FILE.write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))


if __name__ == "__main__":
    main()
