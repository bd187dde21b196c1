"""The changes of a task's state, each with its condition.

::

              create           claim       await_responses               accept_responses (last key)
     [none] ────────▶ working ───────▶ working ─────────▶ input_required ───────────────▶ working
                       READY   ▲        LEASED            AWAITING                         READY
                               │          │ │ sleep ▶ working SLEEPING
                               └ release ─┘ │
                                            ├ complete ▶ completed        cancel, expire: from every status
                                            └ fail     ▶ failed           that is not terminal

A sleeping task can be claimed at its wake-up time. So can a task that awaits responses and has a wake-up
time, because another branch of its tool sleeps; until then it stays input_required and accepts responses.

No transition leaves a terminal status. Only the owner of the lease may write and renew it; the next claim
takes an expired lease. If a client or the time ends a task during a pass, its worker keeps and renews the
lease until it stops. Times are epoch milliseconds. `lease` says who renews a lease, and when.

A status message belongs to the status `working`, where it is the progress, or to `failed`. The change that
leaves the status removes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.tasks.model import CLIENT, OutstandingRequest, Status, WorkState, requests_to_text
from mcp_roundtrip.tasks.store_interface import (
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

IS_OPEN: Final = has_one_of("st", Status.WORKING.value, Status.INPUT_REQUIRED.value)
LEASE_ATTRIBUTES: Final = ("lo", "lu", "lr")

MAX_ATTEMPTS: Final = 10
"""A task is abandoned after this number of workers in a row without progress."""


def claim(*, owner: str, delivery: str, until_ms: int, now_ms: int) -> Change:
    """Acquire the lease of a task that is ready or due, or whose lease has expired."""
    return Change(
        all_of(IS_OPEN, Above("dead", now_ms), Below("att", MAX_ATTEMPTS), _is_claimable(now_ms)),
        set={"rn": WorkState.LEASED.value, "lo": owner, "lu": until_ms, "lr": delivery},
        add={"ver": 1, "att": 1},
        remove=("wake",),
    )


def renew(*, owner: str, until_ms: int) -> Change:
    """Extend the lease, also that of a worker whose task has ended and which has not stopped yet."""
    has_lease = has_one_of("rn", WorkState.LEASED.value, WorkState.DONE.value)
    return Change(all_of(has_lease, Equals("lo", owner)), set={"lu": until_ms})


def release(*, owner: str) -> Change:
    """Release the lease after a failure, so that another worker can claim the task at once."""
    return Change(held_by(owner), set={"rn": WorkState.READY.value}, add={"ver": 1}, remove=LEASE_ATTRIBUTES)


def checkpoint(*, owner: str, accepted_keys: Collection[str]) -> Change:
    """Release the lease after progress, and reset the attempts.

    Accepted responses count as progress. They are stored, because otherwise the next pass would accept them
    again, and the task would never end.
    """
    ready: dict[str, str | int] = {"rn": WorkState.READY.value, "att": 0, "kicks": 0}
    return Change(
        held_by(owner),
        set={**ready, "acc": _keys_to_text(accepted_keys)},
        add={"ver": 1},
        remove=LEASE_ATTRIBUTES,
    )


def reset_attempts(*, owner: str, seen_entries: int) -> Change:
    """Reset the attempts after progress, so that the next poll dispatches a worker without a pause."""
    return Change(held_by(owner), set={"att": 1, "kicks": 0, "seen": seen_entries})


def await_responses(
    *,
    owner: str,
    version: int,
    requests: Mapping[str, OutstandingRequest],
    issued_counts: Mapping[str, int],
    accepted_keys: Collection[str],
    now_ms: int,
    wake_at_ms: int | None = None,
    link: str | None = None,
) -> Change:
    """Wait for responses, and until `wake_at_ms` if it is given. A response during the pass prevents this."""
    waiting: dict[str, Value] = {
        "st": Status.INPUT_REQUIRED.value,
        "rn": WorkState.AWAITING.value,
        "req": requests_to_text(requests),
        "iss": strict_json.compact_json(issued_counts),
    }
    if wake_at_ms is not None:
        waiting |= _wake_up_attributes(wake_at_ms)
    if link is None:
        return _wait(owner, version, accepted_keys, now_ms, waiting, ("msg", "lnk"))
    return _wait(owner, version, accepted_keys, now_ms, {**waiting, "lnk": link}, ("msg",))


def sleep(
    *, owner: str, version: int, accepted_keys: Collection[str], wake_at_ms: int, now_ms: int
) -> Change:
    sleeping: dict[str, Value] = {
        "st": Status.WORKING.value,
        "rn": WorkState.SLEEPING.value,
        "req": requests_to_text({}),
        **_wake_up_attributes(wake_at_ms),
    }
    return _wait(owner, version, accepted_keys, now_ms, sleeping)


def accept_responses(
    *,
    version: int,
    requests: Mapping[str, OutstandingRequest],
    submissions: Mapping[str, str],
    is_leased: bool,
    now_ms: int,
) -> Change:
    """Make the responses of `submissions` (id by wire key) count, and leave `requests` outstanding."""
    attributes: dict[str, Value] = {
        "req": requests_to_text(requests),
        "ans": strict_json.compact_json(submissions),
        "uAt": now_ms,
    }
    is_ready = not requests and not is_leased
    if not requests:
        attributes |= {"st": Status.WORKING.value}
    if is_ready:
        attributes |= {"rn": WorkState.READY.value, "kick": now_ms, "kicks": 0}
    needs_link = any(asked.channel != CLIENT for asked in requests.values())
    removed = [("wake", is_ready), ("lnk", not needs_link), ("msg", not requests)]
    return Change(
        all_of(Equals("ver", version), Equals("st", Status.INPUT_REQUIRED.value)),
        set=attributes,
        add={"ver": 1},
        remove=tuple(name for name, is_removed in removed if is_removed),
    )


def cancel(*, now_ms: int) -> Change:
    """End the task for its client. A worker that runs it keeps its lease until it stops."""
    return _end(IS_OPEN, Status.CANCELLED, now_ms, keeps_lease=True)


def complete(
    *, owner: str, now_ms: int, attributes: Mapping[str, Value], version: int | None = None
) -> Change:
    """End the task with what `put_result` returns. A response during the pass prevents it with `version`."""
    is_unchanged = held_by(owner) if version is None else all_of(held_by(owner), Equals("ver", version))
    return _end(is_unchanged, Status.COMPLETED, now_ms, attributes)


def fail(*, owner: str, now_ms: int, error: Mapping[str, Any]) -> Change:
    return _end(held_by(owner), Status.FAILED, now_ms, _error_attributes(error))


def expire(*, now_ms: int, error: Mapping[str, Any]) -> Change:
    """End a task after its time to live. A worker that runs it keeps its lease until it stops."""
    condition = all_of(IS_OPEN, Below("dead", now_ms + 1))
    return _end(condition, Status.FAILED, now_ms, _error_attributes(error), keeps_lease=True)


def stop(*, owner: str) -> Change:
    """Release the lease of a task that has ended while its worker ran."""
    return Change(all_of(Equals("rn", WorkState.DONE.value), Equals("lo", owner)), remove=LEASE_ATTRIBUTES)


def abandon(*, now_ms: int, error: Mapping[str, Any]) -> Change:
    """End a task with too many lost workers, after the last one's lease."""
    lost = any_of(Equals("rn", WorkState.READY.value), Below("lu", now_ms))
    condition = all_of(IS_OPEN, Above("att", MAX_ATTEMPTS - 1), lost)
    return _end(condition, Status.FAILED, now_ms, _error_attributes(error))


def held_by(owner: str) -> Condition:
    return all_of(IS_OPEN, Equals("rn", WorkState.LEASED.value), Equals("lo", owner))


def record_dispatch(*, dispatched_before_ms: int, now_ms: int) -> Change:
    """Record a dispatch for a task that waits for a worker. Of concurrent polls, only one succeeds."""
    condition = all_of(IS_OPEN, _is_claimable(now_ms), Below("kick", dispatched_before_ms))
    return Change(condition, set={"kick": now_ms}, add={"kicks": 1})


def undo_dispatch(dispatched_at_ms: int, dispatch_count: int, *, now_ms: int) -> Change:
    """Restore the last dispatch and the number of dispatches after the failure of the one at `now_ms`."""
    condition = all_of(IS_OPEN, _is_claimable(now_ms), Equals("kick", now_ms))
    return Change(condition, set={"kick": dispatched_at_ms, "kicks": dispatch_count})


def set_status_message(*, owner: str, message: str, now_ms: int) -> Change:
    """Set the status message of a task that is working. While it asks, a branch may work, too."""
    is_working = all_of(held_by(owner), Equals("st", Status.WORKING.value))
    return Change(is_working, set={"msg": message, "uAt": now_ms})


def _is_claimable(now_ms: int) -> Condition:
    """Return the condition that the task is ready or due, or that its lease has expired."""
    return any_of(
        Equals("rn", WorkState.READY.value),
        all_of(Equals("rn", WorkState.LEASED.value), Below("lu", now_ms)),
        all_of(
            has_one_of("rn", WorkState.SLEEPING.value, WorkState.AWAITING.value), Below("wake", now_ms + 1)
        ),
    )


def _wake_up_attributes(wake_at_ms: int) -> dict[str, str | int]:
    # The first poll after that time dispatches a worker.
    return {"wake": wake_at_ms, "kick": 0, "kicks": 0}


def _wait(
    owner: str,
    version: int,
    accepted_keys: Collection[str],
    now_ms: int,
    attributes: Mapping[str, Value],
    removed: tuple[str, ...] = (),
) -> Change:
    return Change(
        all_of(held_by(owner), Equals("ver", version)),
        set={"acc": _keys_to_text(accepted_keys), "att": 0, "uAt": now_ms, **attributes},
        add={"ver": 1},
        remove=(*LEASE_ATTRIBUTES, *removed),
    )


def _keys_to_text(keys: Collection[str]) -> str:
    return strict_json.compact_json(sorted(keys))


def _error_attributes(error: Mapping[str, Any]) -> dict[str, Value]:
    message = str(error["message"]).encode("utf-8", "replace").decode()  # an attribute is UTF-8
    return {"err": strict_json.compact_json(error), "msg": message}


def _end(
    condition: Condition,
    status: Status,
    now_ms: int,
    attributes: Mapping[str, Value] | None = None,
    *,
    keeps_lease: bool = False,
) -> Change:
    attributes = attributes or {}
    removed = ("wake", "msg") if keeps_lease else (*LEASE_ATTRIBUTES, "wake", "msg")
    return Change(
        condition,
        set={"st": status.value, "rn": WorkState.DONE.value, "uAt": now_ms, **attributes},
        add={"ver": 1},
        remove=tuple(name for name in removed if name not in attributes),
    )
