"""Waits for pages that the user has agreed to open, and has not finished.

A round calls `done` again and again for as long as it lasts, and then puts the question once more. A task
sleeps in between. A call that can become a task does so at once, and waits there. A page whose author says
that it cannot be polled is not waited for: `done` is called once each time the user agrees.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final

from mcp_roundtrip.engine import effects
from mcp_roundtrip.engine.asking import Look, Opened
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.questions import ElicitUrl
from mcp_roundtrip.engine.retry import INLINE_MS
from mcp_roundtrip.engine.run import Pending, Run

FIRST_PAUSE_MS: Final = 250
"""Before the second look; each pause is twice the one before it, up to the author's interval."""

LONGEST_MS: Final = 40_000
"""How long one round waits: a client's own time-out for a request is often 60 seconds."""

RESERVE_MS: Final = 1_000
"""What is left of a round's time when it asks again: enough for the state, which is sealed then."""

TASK_TTL_MS: Final = 3_600_000
"""How long a task lives that a call became in order to wait."""

LONGEST_SLEEP_MS: Final = 60_000
"""Of a task; it sleeps for a quarter of the time it has waited already."""


def wait(run: Run, opened: Opened, look_ms: float) -> Generator[Look, bool | None, list[str]]:
    """The keys of the pages that are complete after all; none was at the first look, which took `look_ms`.

    The others are asked for again, or are a task's to wait for.
    """
    polled = {key: page for key, (page, _) in opened.items() if page.poll_interval_ms is not None}
    if not run.waits_for_pages:
        polled = {}
    asked = opened.keys() - polled.keys()
    finished: list[str] = []
    if polled and run.tasks.recorder is not None:
        finished = yield from _in_task(run, polled)
    elif polled and run.tasks.may_start:
        run.task_ttl_ms = TASK_TTL_MS
        run.opened |= {key: opened[key][1] for key in polled}
    elif polled:
        finished = yield from _in_round(run, polled, look_ms)
        asked = opened.keys() - finished
    for key, (page, entry) in opened.items():
        if key in asked and entry.fingerprint is not None:
            run.pending[key] = Pending(entry.fingerprint, page.method, page.params(), is_opened=True)
    return finished


def _in_round(
    run: Run, polled: Mapping[str, ElicitUrl], look_ms: float
) -> Generator[Look, bool | None, list[str]]:
    """Look until all are complete, something else is to be asked, or the round's time is nearly over."""
    budget, left, finished = run.environment.budget, dict(polled), list[str]()
    end_ms = budget.clock_ms() + min(budget.remaining_ms() - RESERVE_MS, LONGEST_MS)
    pause_ms: float = _interval_ms(polled) if run.journal.url_wait_rounds else FIRST_PAUSE_MS
    while left and not run.asks_anew:
        began_ms = budget.clock_ms()
        if began_ms + pause_ms + look_ms > end_ms:
            yield None, max(end_ms - began_ms, 0)  # the next round begins with a look
            break
        finished += yield from _look(left, pause_ms)
        look_ms = max(look_ms, budget.clock_ms() - began_ms - pause_ms)
        pause_ms = min(2 * pause_ms, _interval_ms(left))
    return finished


def _in_task(run: Run, polled: Mapping[str, ElicitUrl]) -> Generator[Look, bool | None, list[str]]:
    """Look until all are complete, as long as the pauses are short; then have the task sleep."""
    left, finished = dict(polled), list[str]()
    while left:
        opened_ms = min(_opened_ms(run, key) for key in left)
        now_ms = _now_ms(run)
        pause_ms = max((now_ms - opened_ms) // 4, _interval_ms(left))
        if pause_ms > INLINE_MS or run.asks_anew or run.environment.budget.is_short_of():
            run.sleep_until(now_ms + min(pause_ms, max(LONGEST_SLEEP_MS, _interval_ms(left))))
            break
        finished += yield from _look(left, pause_ms)
    return finished


def _opened_ms(run: Run, key: str) -> int:
    """When the first look at the page found it incomplete: journaled, for later workers."""
    opened_ms: int = effects.recall(run, f"{key}~opened", Kind.NOW, lambda: _now_ms(run))
    return opened_ms


def _now_ms(run: Run) -> int:
    return int(run.environment.clock() * 1000)


def _look(left: dict[str, ElicitUrl], pause_ms: float) -> Generator[Look, bool | None, list[str]]:
    """After a pause, take those that are complete out of `left`; returns their keys."""
    finished = []
    for key, page in list(left.items()):
        if (yield page, pause_ms):
            finished.append(key)
            del left[key]
        pause_ms = 0
    return finished


def _interval_ms(pages: Mapping[str, ElicitUrl]) -> int:
    """The longest of their intervals: the call continues once all are complete."""
    return max((page.poll_interval_ms or 0 for page in pages.values()), default=0)
