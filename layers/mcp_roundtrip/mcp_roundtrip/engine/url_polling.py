"""Waits for URL interactions that the user agreed to and has not completed.

- A round calls `done` repeatedly for as long as it lasts, and then asks again.
- A call that can become a task becomes one at once. The task sleeps between the calls of `done`.
- An elicitation with `poll_interval_ms=None` is not polled: `done` is called once each time the user agrees.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.engine.channels import Channel
from mcp_roundtrip.engine.elicitation import ElicitUrl
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.questions import InputRequest
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.engine.steps import MAX_INLINE_PAUSE_MS

FIRST_PAUSE_MS: Final = 250
"""The pause before the second call of `done`. Each further one is twice as long, up to `poll_interval_ms`."""

MAX_ROUND_MS: Final = 40_000
"""The longest time that one round polls: a client's own timeout for a request is often 60 seconds."""

SEAL_RESERVE_MS: Final = 1_000
"""The time left in a round for sealing its state."""

TASK_TTL_MS: Final = 3_600_000
"""The lifetime of a task that a call becomes in order to wait."""

MAX_POLL_SLEEP_MS: Final = 60_000
"""The longest sleep of a task, which sleeps for a quarter of the time that it has waited."""

Poll = tuple[ElicitUrl | None, float]
"""Asks the context to wait that many milliseconds, and then to call `done` of the elicitation, if any."""


class ConsentedUrl(Struct):
    """A URL that the user agreed to open, and the entry to record once its interaction is complete."""

    elicitation: ElicitUrl
    request: InputRequest
    entry: Entry


def poll(
    run: Run, urls: Mapping[str, ConsentedUrl], check_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """Return the keys of the URLs that were completed; the first check found none, and took `check_ms`.

    The others are asked for again, or left to a task.
    """
    polled = {
        key: url.elicitation for key, url in urls.items() if url.elicitation.poll_interval_ms is not None
    }
    if not run.inputs.polls_urls:
        polled = {}
    asked_again = urls.keys() - polled.keys()
    completed: list[str] = []
    channel = next(iter(urls.values())).request.channel  # the same for all: they need the same capability
    if polled and run.is_task:
        completed = yield from _poll_in_task(run, polled, channel)
    elif polled and run.tasks.may_start:
        run.suspension.task_ttl_ms = TASK_TTL_MS
        run.requests.url_consents |= {key: urls[key].entry for key in polled}
    elif polled:
        completed = yield from _poll_in_round(run, polled, channel, check_ms)
        asked_again = urls.keys() - completed
    for key, url in urls.items():
        if key in asked_again:
            run.requests.add(key, replace(url.request, has_consent=True))
    return completed


def _poll_in_round(
    run: Run, polled: Mapping[str, ElicitUrl], channel: Channel, check_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """Poll until all are complete, the user has to be asked something, or the round's time is nearly over."""
    deadline, left, completed = run.services.deadline, dict(polled), list[str]()
    end_ms = deadline.clock_ms() + min(deadline.remaining_ms() - SEAL_RESERVE_MS, MAX_ROUND_MS)
    pause_ms: float = _interval_ms(polled) if run.history.journal.url_wait_rounds else FIRST_PAUSE_MS
    while left and not run.requests.needs_user(channel):
        began_ms = deadline.clock_ms()
        if began_ms + pause_ms + check_ms > end_ms:
            yield None, max(end_ms - began_ms, 0)  # the next round begins with a check
            break
        completed += yield from _check_after_pause(left, pause_ms)
        check_ms = max(check_ms, deadline.clock_ms() - began_ms - pause_ms)
        pause_ms = min(2 * pause_ms, _interval_ms(left))
    return completed


def _poll_in_task(
    run: Run, polled: Mapping[str, ElicitUrl], channel: Channel
) -> Generator[Poll, bool | None, list[str]]:
    """Poll until all are complete while the pauses are short; then let the task sleep."""
    left, completed = dict(polled), list[str]()
    while left:
        waiting_since_ms = min(_waiting_since_ms(run, key) for key in left)
        now_ms = _now_ms(run)
        pause_ms = max((now_ms - waiting_since_ms) // 4, _interval_ms(left))
        is_short = run.services.deadline.is_short_of()
        if pause_ms > MAX_INLINE_PAUSE_MS or run.requests.needs_user(channel) or is_short:
            run.suspension.sleep_until(now_ms + min(pause_ms, max(MAX_POLL_SLEEP_MS, _interval_ms(left))))
            break
        completed += yield from _check_after_pause(left, pause_ms)
    return completed


def _waiting_since_ms(run: Run, key: str) -> int:
    """Return when the first check found the URL incomplete, journaled for later workers."""
    since_ms: int = run.replay_or_make(f"{key}~opened", Kind.NOW, lambda: _now_ms(run))
    return since_ms


def _now_ms(run: Run) -> int:
    return int(run.services.clock() * 1000)


def _check_after_pause(
    left: dict[str, ElicitUrl], pause_ms: float
) -> Generator[Poll, bool | None, list[str]]:
    """After a pause, remove the complete ones from `left` and return their keys."""
    completed = []
    for key, elicitation in list(left.items()):
        if (yield elicitation, pause_ms):
            completed.append(key)
            del left[key]
        pause_ms = 0
    return completed


def _interval_ms(elicitations: Mapping[str, ElicitUrl]) -> int:
    """Return the longest interval: the call continues once all are complete."""
    return max((each.poll_interval_ms or 0 for each in elicitations.values()), default=0)
