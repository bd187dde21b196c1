"""The limit of open tasks for each user.

One item for each user lists the open tasks of all principals of the user, which differ in the OAuth client: a
user has any number of them where clients register themselves. A task is created and listed in one
transaction whose condition is the limit, so racing processes never exceed it, and a crash leaves neither an
unlisted task nor an entry without a task. Nothing is written when a task ends: when the list is full, the
tasks on it are read, and those that no longer count are removed. A task that was cancelled or has expired
counts until its worker stops, so the workers of a user are limited, too. A parked call counts until its first
questions are answered: later ones cost no more than an item, and a call in progress is never refused.

Anonymous callers are no users. They share 256 lists, so a caller can fill the list of a few others, and all
of them together have an upper bound.

The item has an attribute for each task: its partition key, with the end of its time to live. `n` is the
number of these, and `exp` is not before that of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from mcp_roundtrip.auth.callers import user_of
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.tasks.call_and_journal_items import read_task
from mcp_roundtrip.tasks.model import Task, WorkState
from mcp_roundtrip.tasks.store_interface import (
    Absent,
    Below,
    Change,
    Equals,
    Item,
    TaskStore,
    Update,
    all_of,
    any_of,
)

OPEN_TASKS: Final = "O"
"""The sort key of the item."""

WRITE_ATTEMPTS: Final = 10
"""The attempts for a write that concurrent writes prevent."""

MAX_REMOVED: Final = 25
"""The most entries that one write removes: a DynamoDB expression has at most 4 KB."""


class TooManyOpenTasks(McpRoundtripError):
    """The user has `limit` open tasks."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} open tasks")
        self.limit = limit


class Owner(Struct, frozen=True):
    """The owner of a task: its `caller_binding`; of an anonymous caller, the session or the call's flow."""

    principal: str | None
    session: str | None
    flow_id: str

    @property
    def list_key(self) -> str:
        """The partition key of the item that lists the open tasks of the owner's user."""
        if self.principal is not None:
            return strict_json.digest("mcp-rs/v1/open-tasks", user_of(self.principal), size=24)
        one_of_256 = strict_json.digest("mcp-rs/v1/anonymous-caller", self.session or self.flow_id, size=1)
        return strict_json.digest("mcp-rs/v1/open-tasks", ["anonymous", one_of_256], size=24)


class TaskLimit(Struct, frozen=True):
    """Creates tasks, at most `max_open` open ones in each list; any number if that is 0."""

    store: TaskStore
    clock_ms: Callable[[], int]
    max_open: int

    def check(self, owner: Owner) -> None:
        """Raise TooManyOpenTasks if no task can be listed now. Removes tasks that no longer count."""
        if self.max_open:
            self._make_room(owner.list_key, self._read(owner.list_key))

    def create(self, owner: Owner, task: Task, *updates: Update) -> Sequence[Update]:
        """Write a new task and updates, or nothing; return the unmet updates. Raises TooManyOpenTasks."""
        if not self.max_open:
            return self.put(task, *updates)
        list_key = owner.list_key
        item: Item = {}  # the first write needs no read: the task usually expires after those on the list
        for _ in range(WRITE_ATTEMPTS):
            listed = Update(list_key, OPEN_TASKS, self._add(item, task))
            unmet = self.store.put_new_and_update(task.to_item(), listed, *updates)
            if listed not in unmet:
                return unmet
            item = self._make_room(list_key, self._read(list_key))
        raise StoreError("too_many_concurrent_updates")

    def replace(
        self, owner: Owner, ended: Task, task: Task, *updates: Update, is_counted: bool
    ) -> Sequence[Update]:
        """Write a task that takes the place of `ended` on the list; otherwise the same as `create`.

        If `ended` is not listed, the new task needs room if it `is_counted`, and is not listed otherwise.
        """
        for _ in range(WRITE_ATTEMPTS):
            item = self._read(owner.list_key) if self.max_open else {}
            if ended.pk not in item:
                return self.create(owner, task, *updates) if is_counted else self.put(task, *updates)
            listed = Update(owner.list_key, OPEN_TASKS, _replace(item, ended, task))
            unmet = self.store.put_new_and_update(task.to_item(), *updates, listed)
            if listed not in unmet:
                return unmet
        raise StoreError("too_many_concurrent_updates")

    def put(self, task: Task, *updates: Update) -> Sequence[Update]:
        """Write a task that does not count; otherwise the same as `create`."""
        if updates:
            return self.store.put_new_and_update(task.to_item(), *updates)
        self.store.put_new(task.to_item())
        return ()

    def _add(self, item: Item, task: Task) -> Change:
        # A write that is sent again, because its response was lost, counts once.
        has_room = all_of(Below("n", self.max_open), Absent(task.pk))
        expires_s = _expires_s(item, task)
        condition = any_of(Absent("n"), all_of(Below("exp", expires_s + 1), has_room))
        return Change(condition, {task.pk: task.deadline_ms, "exp": expires_s}, add={"n": 1})

    def _read(self, pk: str) -> Item:
        return self.store.get(pk, OPEN_TASKS) or {}

    def _make_room(self, pk: str, item: Item) -> Item:
        """Return the list; remove ended tasks if it is full. Raises TooManyOpenTasks if none has ended."""
        for _ in range(WRITE_ATTEMPTS):
            if int(item.get("n", 0)) < self.max_open:
                return item
            ended = self._ended(item)
            if not ended:
                raise TooManyOpenTasks(self.max_open)
            item = self.store.update(pk, OPEN_TASKS, _remove(ended)) or self._read(pk)
        raise StoreError("too_many_concurrent_updates")

    def _ended(self, item: Item) -> dict[str, int]:
        """Return at most `MAX_REMOVED` entries of tasks that no longer count, the oldest first."""
        entries = {name: int(value) for name, value in item.items() if "#" in name}
        ended: dict[str, int] = {}
        for pk, deadline_ms in sorted(entries.items(), key=lambda entry: entry[1]):
            if len(ended) < MAX_REMOVED and self._has_ended(pk, deadline_ms):
                ended[pk] = deadline_ms
        return ended

    def _has_ended(self, pk: str, deadline_ms: int) -> bool:
        now_ms = self.clock_ms()
        task = read_task(self.store, pk)
        if task is None:
            return True
        # The worker of a cancelled task runs until its current step has ended.
        is_worked_on = task.lease_until_ms is not None and task.lease_until_ms > now_ms
        is_idle = not task.worker and task.work_state is not WorkState.AWAITING  # a parked call
        return (task.is_terminal or is_idle or task.deadline_ms <= now_ms) and not is_worked_on


def _remove(entries: dict[str, int]) -> Change:
    are_listed = all_of(*(Equals(pk, deadline_ms) for pk, deadline_ms in entries.items()))
    return Change(are_listed, add={"n": -len(entries)}, remove=tuple(entries))


def _replace(item: Item, ended: Task, task: Task) -> Change:
    """Return the change that lists a task in the place of another, if the item's end has not changed."""
    is_current = all_of(Equals(ended.pk, item[ended.pk]), Equals("exp", item["exp"]))
    listed = {task.pk: task.deadline_ms, "exp": _expires_s(item, task)}
    return Change(is_current, listed, remove=(ended.pk,))


def _expires_s(item: Item, task: Task) -> int:
    """Return when a list expires after this task was added."""
    return max(int(item.get("exp", 0)), task.expires_s)
