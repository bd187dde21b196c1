"""The limit of open tasks for each principal.

One item for each principal lists the principal's open tasks. A task is created and listed in one transaction
whose condition is the limit, so racing processes never exceed it, and a crash leaves neither an unlisted task
nor an entry without a task. Nothing is written when a task ends: when the list is full, the tasks on it are
read, and those that have ended are removed. A task that was cancelled or has expired counts until its worker
stops, so the workers of a principal are limited, too.

==========  ==============================================================================================
attribute   holds
==========  ==============================================================================================
n           the number of entries
exp         when DynamoDB may delete the item: not before the last of its tasks, in epoch seconds
<pk>        an entry: its name is the partition key of a task, its value the end of the task's time to live
==========  ==============================================================================================

Anonymous callers are one principal here, as they are in `model.task_partition_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.changes import Above, Absent, Below, Change, Equals, Item, all_of, any_of
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import TaskStore, Update

OPEN_TASKS: Final = "O"
"""The sort key of the item."""

WRITE_ATTEMPTS: Final = 10
"""The attempts for a write that concurrent writes prevent."""

MAX_REMOVED: Final = 25
"""The most entries that one write removes: a DynamoDB expression has at most 4 KB."""


class TooManyOpenTasks(McpRoundtripError):
    """The principal has as many open tasks as are allowed: `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} open tasks")
        self.limit = limit


class TaskLimit(Struct, frozen=True):
    """Creates tasks, at most `max_open` open ones for each principal; any number if that is 0.

    `clock_ms` returns epoch milliseconds.
    """

    store: TaskStore
    clock_ms: Callable[[], int]
    max_open: int

    def check(self, principal: str | None) -> None:
        """Raise TooManyOpenTasks if the principal cannot create a task now. Raises StoreError."""
        if self.max_open:
            self._make_room(open_tasks_partition_key(principal))

    def create(self, principal: str | None, task: Task) -> None:
        """Write the item of a new task. Raises TooManyOpenTasks and StoreError."""
        if self.max_open:
            self._create_counted(principal, task, [])
        else:
            self.store.put_new(task.to_item())

    def create_with(self, principal: str | None, task: Task, update: Update) -> bool:
        """Write the item of a new task together with an update; return whether the update's condition held.

        If it did not, nothing is written. Raises TooManyOpenTasks and StoreError.
        """
        if self.max_open:
            return self._create_counted(principal, task, [update])
        return self.store.put_new_and_update(task.to_item(), update)

    def replace(self, principal: str | None, ended: Task, task: Task, *updates: Update) -> bool:
        """Write the item of a new task together with updates, one of which ends another task.

        The new task takes the place of the other one in the list. Returns False if the condition of an update
        did not hold; nothing is written then. Raises StoreError.
        """
        pk = open_tasks_partition_key(principal)
        for _ in range(WRITE_ATTEMPTS):
            item = (self.store.get(pk, OPEN_TASKS) or {}) if self.max_open else {}
            listed = [Update(pk, OPEN_TASKS, _replace(item, ended, task))] if ended.pk in item else []
            if self.store.put_new_and_update(task.to_item(), *updates, *listed):
                return True
            if not self._hold(updates):
                return False
        raise StoreError("too_many_concurrent_updates")

    def _hold(self, updates: Sequence[Update]) -> bool:
        """Return whether the conditions of the updates hold now."""
        return all(each.change.condition.holds(self.store.get(each.pk, each.sk) or {}) for each in updates)

    def _create_counted(self, principal: str | None, task: Task, updates: list[Update]) -> bool:
        pk = open_tasks_partition_key(principal)
        is_last_to_expire = True  # it usually is, and the first write needs no read
        for _ in range(WRITE_ATTEMPTS):
            entry = Update(pk, OPEN_TASKS, self._add(task, is_last_to_expire=is_last_to_expire))
            if self.store.put_new_and_update(task.to_item(), entry, *updates):
                return True
            if not self._hold(updates):
                return False
            is_last_to_expire = int(self._make_room(pk).get("exp", 0)) <= task.expires_s
        raise StoreError("too_many_concurrent_updates")

    def _add(self, task: Task, *, is_last_to_expire: bool) -> Change:
        has_room, entry = Below("n", self.max_open), {task.pk: task.deadline_ms}
        if not is_last_to_expire:
            return Change(all_of(has_room, Above("exp", task.expires_s)), set=entry, add={"n": 1})
        expires_earlier = Below("exp", task.expires_s + 1)
        condition = any_of(Absent("n"), all_of(has_room, expires_earlier))
        return Change(condition, set={**entry, "exp": task.expires_s}, add={"n": 1})

    def _make_room(self, pk: str) -> Item:
        """Return the principal's item, or {}; remove the entries of ended tasks first if the item is full.

        Raises TooManyOpenTasks if no task on it has ended.
        """
        item = self.store.get(pk, OPEN_TASKS)
        for _ in range(WRITE_ATTEMPTS):
            if item is None or int(item["n"]) < self.max_open:
                return item or {}
            ended = self._ended(item)
            if not ended:
                raise TooManyOpenTasks(self.max_open)
            item = self.store.update(pk, OPEN_TASKS, _remove(ended)) or self.store.get(pk, OPEN_TASKS)
        raise StoreError("too_many_concurrent_updates")

    def _ended(self, item: Item) -> dict[str, int]:
        """Return the entries of tasks that have ended: at most `MAX_REMOVED`, the oldest first."""
        entries = {name: int(value) for name, value in item.items() if "#" in name}
        ended: dict[str, int] = {}
        for pk, deadline_ms in sorted(entries.items(), key=lambda entry: entry[1]):
            if len(ended) < MAX_REMOVED and self._has_ended(pk):
                ended[pk] = deadline_ms
        return ended

    def _has_ended(self, pk: str) -> bool:
        item, now_ms = self.store.get(pk, TASK), self.clock_ms()
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
    """Return the key of the item that lists the open tasks of a principal.

    `principal` is canonical JSON, None for anonymous callers.
    """
    return canonical.digest("mcp-rs/v1/open-tasks", principal, size=24)
