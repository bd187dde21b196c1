"""The limit of open tasks for each user.

One item for each user lists the open tasks of all principals of the user. They differ in the OAuth client:
where clients register themselves, a user has any number of them. A task is created and listed in one
transaction whose condition is the limit, so racing processes never exceed it, and a crash leaves neither an
unlisted task nor an entry without a task. Nothing is written when a task ends: when the list is full, the
tasks on it are read, and those that have ended are removed. A task that was cancelled or has expired counts
until its worker stops, so the workers of a user are limited, too.

A call can reserve a place before it runs, so that no other call takes it. The new task replaces the place in
its transaction. A place whose process was lost lapses when the time of its invocation ends. Concurrent rounds
of a flow share a place, because they become one task.

============  ============================================================================================
attribute     holds
============  ============================================================================================
n             the number of entries
exp           when DynamoDB may delete the item: not before the last of its tasks, in epoch seconds
<pk>          an entry: its name is the partition key of a task, its value the end of the task's time to live
reserved#<…>  an entry: a reserved place, and when it lapses, in epoch milliseconds
============  ============================================================================================

Anonymous callers are one user here, as they are one principal in `model.task_partition_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.principal import user_of
from mcp_roundtrip.tasks.changes import (
    Above,
    Absent,
    Below,
    Change,
    Condition,
    Equals,
    Item,
    all_of,
    any_of,
)
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import TaskStore, Update

OPEN_TASKS: Final = "O"
"""The sort key of the item."""

WRITE_ATTEMPTS: Final = 10
"""The attempts for a write that concurrent writes prevent."""

MAX_REMOVED: Final = 25
"""The most entries that one write removes: a DynamoDB expression has at most 4 KB."""

RESERVED: Final = "reserved#"
"""The prefix of the names of reserved places."""

RESERVED_ITEM_TTL_S: Final = 7 * 24 * 3_600
"""How long the item exists after a place was reserved: most tasks end earlier, and leave `exp` as it is."""


class TooManyOpenTasks(McpRoundtripError):
    """The user has as many open tasks as are allowed: `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} open tasks")
        self.limit = limit


class Place(Struct):
    """A reserved place: the name and the value of its entry, and a lower bound of the item's `exp`.

    `is_shared`: another round of the flow has reserved it, and releases it. `is_taken` is set when a task has
    taken the place. It is the only member that changes.
    """

    name: str
    lapses_at_ms: int
    expires_s: int
    is_shared: bool = False
    is_taken: bool = False


class TaskLimit(Struct, frozen=True):
    """Creates tasks, at most `max_open` open ones for each user; any number if that is 0.

    `clock_ms` returns epoch milliseconds.
    """

    store: TaskStore
    clock_ms: Callable[[], int]
    max_open: int

    def check(self, principal: str | None) -> None:
        """Raise TooManyOpenTasks if the principal cannot create a task now. Raises StoreError."""
        if self.max_open:
            pk = open_tasks_partition_key(principal)
            self._make_room(pk, self._read(pk))

    def reserve(self, principal: str | None, lapses_at_ms: int, name: str) -> Place | None:
        """Reserve a place until a time in epoch milliseconds, or share that of this name.

        Returns None if there is no limit. Raises TooManyOpenTasks and StoreError.
        """
        if not self.max_open:
            return None
        pk = open_tasks_partition_key(principal)
        expires_s = self.clock_ms() // 1000 + RESERVED_ITEM_TTL_S
        place = Place(RESERVED + name, lapses_at_ms, expires_s)
        is_last_to_expire = True
        for _ in range(WRITE_ATTEMPTS):
            change = self._add(place.name, lapses_at_ms, expires_s, is_last_to_expire=is_last_to_expire)
            if self.store.update(pk, OPEN_TASKS, change) is not None:
                return place
            item = self._read(pk)
            if place.name in item:  # also if the response to the write was lost, and another write followed
                present_ms = int(item[place.name])
                return Place(place.name, present_ms, expires_s, is_shared=present_ms != lapses_at_ms)
            is_last_to_expire = int(self._make_room(pk, item).get("exp", 0)) <= expires_s
        raise StoreError("too_many_concurrent_updates")

    def release(self, principal: str | None, place: Place) -> None:
        """Give a place back that no task has taken. Raises StoreError."""
        entries = {place.name: place.lapses_at_ms}
        self.store.update(open_tasks_partition_key(principal), OPEN_TASKS, _remove(entries))

    def create(
        self, principal: str | None, task: Task, updates: Sequence[Update] = (), place: Place | None = None
    ) -> bool:
        """Write the item of a new task, which takes the place, together with updates.

        Returns whether the conditions of the updates held. If one did not, nothing is written. Raises
        TooManyOpenTasks and StoreError.
        """
        if self.max_open:
            return self._create_counted(principal, task, updates, place)
        if updates:
            return self.store.put_new_and_update(task.to_item(), *updates)
        self.store.put_new(task.to_item())
        return True

    def replace(self, principal: str | None, ended: Task, task: Task, *updates: Update) -> bool:
        """Write the item of a new task together with updates, one of which ends another task.

        The new task takes the place of the other one in the list. Returns False if the condition of an update
        did not hold; nothing is written then. Raises StoreError.
        """
        pk = open_tasks_partition_key(principal)
        for _ in range(WRITE_ATTEMPTS):
            item = self._read(pk) if self.max_open else {}
            listed = [Update(pk, OPEN_TASKS, _replace(item, ended, task))] if ended.pk in item else []
            if self.store.put_new_and_update(task.to_item(), *updates, *listed):
                return True
            if not self._hold(updates):
                return False
        raise StoreError("too_many_concurrent_updates")

    def _hold(self, updates: Sequence[Update]) -> bool:
        """Return whether the conditions of the updates hold now."""
        return all(each.change.condition.holds(self.store.get(each.pk, each.sk) or {}) for each in updates)

    def _create_counted(
        self, principal: str | None, task: Task, updates: Sequence[Update], place: Place | None
    ) -> bool:
        pk, expires_s = open_tasks_partition_key(principal), task.expires_s
        # Without a place it usually is, and the first write needs no read.
        is_last_to_expire = place is None or place.expires_s <= expires_s
        for _ in range(WRITE_ATTEMPTS):
            added = self._add(
                task.pk, task.deadline_ms, expires_s, is_last_to_expire=is_last_to_expire, place=place
            )
            if self.store.put_new_and_update(task.to_item(), Update(pk, OPEN_TASKS, added), *updates):
                if place is not None:
                    place.is_taken = True
                return True
            if not self._hold(updates):
                return False
            item = self._read(pk)
            if place is None or item.get(place.name) != place.lapses_at_ms:  # it has lapsed, or was released
                place, item = None, self._make_room(pk, item)
            is_last_to_expire = int(item.get("exp", 0)) <= expires_s
        raise StoreError("too_many_concurrent_updates")

    def _add(
        self,
        name: str,
        value: int,
        expires_s: int,
        *,
        is_last_to_expire: bool,
        place: Place | None = None,
    ) -> Change:
        """Return the change that adds an entry, or puts it into the place."""
        if place is None:
            # A write that is sent again, because its response was lost, counts once.
            has_room: Condition = all_of(Below("n", self.max_open), Absent(name))
            counted = Change(has_room, set={name: value}, add={"n": 1})
        else:
            has_room = Equals(place.name, place.lapses_at_ms)
            counted = Change(has_room, set={name: value}, remove=(place.name,))
        if not is_last_to_expire:
            return replace(counted, condition=all_of(Above("exp", expires_s), has_room))
        condition: Condition = all_of(Below("exp", expires_s + 1), has_room)
        if place is None:
            condition = any_of(Absent("n"), condition)
        return replace(counted, condition=condition, set={**counted.set, "exp": expires_s})

    def _read(self, pk: str) -> Item:
        """Return the item, or {} if there is none."""
        return self.store.get(pk, OPEN_TASKS) or {}

    def _make_room(self, pk: str, item: Item) -> Item:
        """Return the user's item, without the entries of ended tasks if it was full.

        Raises TooManyOpenTasks if no task on it has ended.
        """
        for _ in range(WRITE_ATTEMPTS):
            if int(item.get("n", 0)) < self.max_open:
                return item
            ended = self._ended(item)
            if not ended:
                raise TooManyOpenTasks(self.max_open)
            item = self.store.update(pk, OPEN_TASKS, _remove(ended)) or self._read(pk)
        raise StoreError("too_many_concurrent_updates")

    def _ended(self, item: Item) -> dict[str, int]:
        """Return the entries of ended tasks and lapsed places: at most `MAX_REMOVED`, the oldest first."""
        entries = {name: int(value) for name, value in item.items() if "#" in name}
        ended: dict[str, int] = {}
        for pk, deadline_ms in sorted(entries.items(), key=lambda entry: entry[1]):
            if len(ended) < MAX_REMOVED and self._has_ended(pk, deadline_ms):
                ended[pk] = deadline_ms
        return ended

    def _has_ended(self, pk: str, deadline_ms: int) -> bool:
        now_ms = self.clock_ms()
        if pk.startswith(RESERVED):
            return deadline_ms <= now_ms
        item = self.store.get(pk, TASK)
        if item is None:
            return True
        task = Task.from_item(item)
        # The worker of a cancelled task runs until its current step has ended.
        is_worked_on = task.lease_until_ms is not None and task.lease_until_ms > now_ms
        return (task.is_terminal or task.deadline_ms <= now_ms) and not is_worked_on


def _remove(entries: dict[str, int]) -> Change:
    """Return the change that removes entries, unless another process has removed one of them."""
    are_listed = all_of(*(Equals(pk, deadline_ms) for pk, deadline_ms in entries.items()))
    return Change(are_listed, add={"n": -len(entries)}, remove=tuple(entries))


def _replace(item: Item, ended: Task, task: Task) -> Change:
    """Return the change that lists a task in the place of another, if the item's end has not changed."""
    exp = int(item["exp"])
    is_current = all_of(Equals(ended.pk, item[ended.pk]), Equals("exp", exp))
    expires_s = max(exp, task.expires_s)
    return Change(is_current, set={task.pk: task.deadline_ms, "exp": expires_s}, remove=(ended.pk,))


def open_tasks_partition_key(principal: str | None) -> str:
    """Return the key of the item that lists the open tasks of a principal's user.

    `principal` is its `caller_binding`, None for anonymous callers.
    """
    return canonical.digest("mcp-rs/v1/open-tasks", user_of(principal), size=24)
