"""Every way a task's item can change, with the condition under which it may.

::

              create           claim              park                   answered (last key)
     [none] ────────▶ working ───────▶ working ─────────▶ input_required ───────────────▶ working
                       READY   ▲        LEASED            PARKED                           READY
                               │          │ │ sleep ▶ working SLEEPING
                               └ release ─┘ │
                                            ├ complete ▶ completed        cancel, expire: from every status
                                            └ fail     ▶ failed           that is not terminal

What sleeps is claimed when it is due. So is what is parked with a time to wake at, for another branch has
something to do then: it stays input_required meanwhile, and takes answers.

A terminal status is left by no transition. Whoever holds the lease is the one worker that may write; when
its time is over, the next claim takes it. Times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from mcp_roundtrip import canonical
from mcp_roundtrip.tasks.changes import (
    Above,
    Below,
    Change,
    Condition,
    Equals,
    Value,
    all_of,
    any_of,
    has_one_of,
)
from mcp_roundtrip.tasks.model import OutstandingRequest, Status, WorkState, requests_to_text

OPEN: Final = has_one_of("st", Status.WORKING.value, Status.INPUT_REQUIRED.value)
LEASE: Final = ("lo", "lu")


def claim(*, owner: str, until_ms: int, now_ms: int, max_attempts: int) -> Change:
    """Take the lease of a task that is ready, due, or was left by a worker whose lease is over."""
    return Change(
        all_of(OPEN, Above("dead", now_ms), Below("att", max_attempts), _waits_for_a_worker(now_ms)),
        set={"rn": WorkState.LEASED.value, "lo": owner, "lu": until_ms},
        add={"ver": 1, "att": 1},
        remove=("wake",),
    )


def release(*, owner: str) -> Change:
    """Give the lease back with the work not done: another claim goes on at once."""
    return Change(_held_by(owner), set={"rn": WorkState.READY.value}, add={"ver": 1}, remove=LEASE)


def checkpoint(*, owner: str, accepted: Collection[str]) -> Change:
    """The same after some of the work was done: the attempts begin anew.

    What was done may be that answers were taken: the next pass has to find them in the journal, or it would
    take them again, count that as work, and so on for ever.
    """
    ready: dict[str, str | int] = {"rn": WorkState.READY.value, "att": 0, "kicks": 0}
    return Change(
        _held_by(owner), set={**ready, "acc": _keys_to_text(accepted)}, add={"ver": 1}, remove=LEASE
    )


def reset_attempts(*, owner: str, seen: int) -> Change:
    """Note that the workers that were lost got something done: the attempts begin anew with this one."""
    return Change(_held_by(owner), set={"att": 1, "seen": seen})


def park(
    *,
    owner: str,
    version: int,
    requests: Mapping[str, OutstandingRequest],
    issued: Mapping[str, int],
    accepted: Collection[str],
    now_ms: int,
    wake_at_ms: int | None = None,
) -> Change:
    """Wait for answers, and for a time if one is given.

    Not if an answer arrived meanwhile (`version`): the pass did not know it.
    """
    return _left_waiting(
        owner,
        version,
        accepted,
        now_ms,
        st=Status.INPUT_REQUIRED.value,
        rn=WorkState.PARKED.value,
        req=requests_to_text(requests),
        iss=canonical.compact(issued),
        **({} if wake_at_ms is None else _woken_at(wake_at_ms)),
    )


def sleep(*, owner: str, version: int, accepted: Collection[str], wake_at_ms: int, now_ms: int) -> Change:
    """Wait for a time."""
    return _left_waiting(
        owner,
        version,
        accepted,
        now_ms,
        st=Status.WORKING.value,
        rn=WorkState.SLEEPING.value,
        req=requests_to_text({}),
        **_woken_at(wake_at_ms),
    )


def answered(
    *, version: int, requests: Mapping[str, OutstandingRequest], is_leased: bool, now_ms: int
) -> Change:
    """Leave `requests` outstanding; without any, a worker goes on, if none is at work already."""
    told: dict[str, Value] = {"req": requests_to_text(requests), "uAt": now_ms}
    is_ready = not requests and not is_leased
    if not requests:
        told |= {"st": Status.WORKING.value}
    if is_ready:
        told |= {"rn": WorkState.READY.value, "kick": now_ms, "kicks": 0}
    return Change(
        all_of(Equals("ver", version), Equals("st", Status.INPUT_REQUIRED.value)),
        set=told,
        add={"ver": 1},
        remove=("wake",) if is_ready else (),
    )


def cancel(*, now_ms: int) -> Change:
    """End the task at its client's wish."""
    return _ended(OPEN, Status.CANCELLED, now_ms)


def complete(*, owner: str, now_ms: int, told: Mapping[str, Value]) -> Change:
    """End with a result, of which `items.result_items` says what to tell."""
    return _ended(_held_by(owner), Status.COMPLETED, now_ms, **told)


def fail(*, owner: str, now_ms: int, error: Mapping[str, Any], message: str) -> Change:
    """End with a JSON-RPC error."""
    return _ended(_held_by(owner), Status.FAILED, now_ms, err=canonical.compact(error), msg=message)


def expire(*, now_ms: int, error: Mapping[str, Any], message: str) -> Change:
    """End a task whose time to live is over."""
    condition = all_of(OPEN, Below("dead", now_ms + 1))
    return _ended(condition, Status.FAILED, now_ms, err=canonical.compact(error), msg=message)


def abandon(*, now_ms: int, max_attempts: int, error: Mapping[str, Any], message: str) -> Change:
    """End a task whose workers were lost too often, once the last one's lease is over."""
    lost = any_of(Equals("rn", WorkState.READY.value), Below("lu", now_ms))
    condition = all_of(OPEN, Above("att", max_attempts - 1), lost)
    return _ended(condition, Status.FAILED, now_ms, err=canonical.compact(error), msg=message)


def record_dispatch(*, dispatched_before_ms: int, now_ms: int) -> Change:
    """Note that a worker is sent for, for a task that waits for one. Of many polls one does it."""
    condition = all_of(OPEN, _waits_for_a_worker(now_ms), Below("kick", dispatched_before_ms))
    return Change(condition, set={"kick": now_ms}, add={"kicks": 1})


def progress(*, owner: str, message: str, now_ms: int) -> Change:
    """Say how far the work is."""
    return Change(_held_by(owner), set={"msg": message, "uAt": now_ms})


def _waits_for_a_worker(now_ms: int) -> Condition:
    """Ready, left by a worker whose lease is over, or due."""
    return any_of(
        Equals("rn", WorkState.READY.value),
        all_of(Equals("rn", WorkState.LEASED.value), Below("lu", now_ms)),
        all_of(has_one_of("rn", WorkState.SLEEPING.value, WorkState.PARKED.value), Below("wake", now_ms + 1)),
    )


def _woken_at(wake_at_ms: int) -> dict[str, str | int]:
    # Whoever polls first when it is due sends for a worker.
    return {"wake": wake_at_ms, "kick": 0, "kicks": 0}


def _left_waiting(
    owner: str, version: int, accepted: Collection[str], now_ms: int, **told: str | int
) -> Change:
    """Give the lease back with nothing to do before somebody or something comes."""
    return Change(
        all_of(_held_by(owner), Equals("ver", version)),
        set={"acc": _keys_to_text(accepted), "att": 0, "uAt": now_ms, **told},
        add={"ver": 1},
        remove=LEASE,
    )


def _keys_to_text(keys: Collection[str]) -> str:
    return canonical.compact(sorted(keys))


def _held_by(owner: str) -> Condition:
    return all_of(OPEN, Equals("rn", WorkState.LEASED.value), Equals("lo", owner))


def _ended(condition: Condition, status: Status, now_ms: int, **told: Value) -> Change:
    return Change(
        condition,
        set={"st": status.value, "rn": WorkState.DONE.value, "uAt": now_ms, **told},
        add={"ver": 1},
        remove=(*LEASE, "wake"),
    )
