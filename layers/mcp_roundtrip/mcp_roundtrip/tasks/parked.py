"""Parked calls: calls that wait in the task table for answers, without a worker.

A parked call is a task of the dialect `parked`. Its client knows no task id: it calls the same tool with the
same arguments again. So an item under the identity of the call, which is a digest of caller, tool and
arguments, names the task:

==========  ==============================================================================================
attribute   holds
==========  ==============================================================================================
call        the partition key of the task
exp         when DynamoDB may delete the item, in epoch seconds
==========  ==============================================================================================

Each task has a random id, so a call that starts from its beginning never meets the journal of an earlier one.
Task and item are written in one transaction: of concurrent calls, one is parked, and the others find it.

A task of a client's whose question the client cannot show is moved: the call is parked with its journal and
the task ends, in one transaction. A parked call that becomes a task names it by its own key, so a pass after
a crash finds the same task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip import canonical
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.tasks.changes import Absent, Change, Condition, Equals
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import WRITE_ATTEMPTS, Place
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Status, Task, WorkState
from mcp_roundtrip.tasks.question_links import LINKED, PAGE, link_to_item, new_token
from mcp_roundtrip.tasks.service import Tasks, task_id_of
from mcp_roundtrip.tasks.store import Update

DIALECT: Final = "parked"

INDEX: Final = "C"
"""The sort key of the item that names the task of a call."""

TTL_MS: Final = 3_600_000
"""The time for which a parked call waits."""

RESULT_TTL_MS: Final = 60_000
"""The time for which a result is returned again: its response may have been lost."""


class ParkedCaller(Struct, frozen=True):
    """A caller, and its call. All are texts that differ between callers.

    `binding` owns the task: the caller's principal, or the session of an anonymous caller. `principal` is the
    one whose open tasks are limited; all anonymous callers are None. `identity` is the digest of the call.
    """

    binding: str
    principal: str | None
    identity: str


class ParkedCalls(Struct, frozen=True):
    """Finds and creates parked calls. `tasks` has their dialect."""

    tasks: Tasks

    @classmethod
    def of(cls, tasks: Tasks) -> ParkedCalls:
        """Return the parked calls in the table of other tasks."""
        return cls(replace(tasks, dialect=DIALECT))

    def find(self, caller: ParkedCaller) -> Task | None:
        """Return the task of the caller's call; None if there is none to continue. Raises StoreError."""
        index = self.tasks.store.get(_index_key(caller), INDEX)
        return None if index is None else self.load(str(index["call"]))

    def load(self, pk: str) -> Task | None:
        """Return a task; None if it does not exist, or its call starts from the beginning by now."""
        item = self.tasks.store.get(pk, TASK)
        task = None if item is None else Task.from_item(item)
        return task if task is not None and self._is_current(task) else None

    def create(
        self,
        caller: ParkedCaller,
        call: TaskCall,
        journal: Journal,
        requests: Mapping[str, Mapping[str, Any]],
        channel: str,
        place: Place | None = None,
    ) -> Task:
        """Park a call and return its task, or the task of a concurrent call that was parked first.

        `requests` are the InputRequest objects by key that the user is asked through `channel`. Without any,
        the call was out of time, and its next call continues. `place` is reserved for the call among the
        caller's open tasks. Raises TooManyOpenTasks, StoreError, and ItemTooLarge for the arguments or an
        entry.
        """
        if place is None:
            self.tasks.limit.check(caller.principal)  # a call that is refused writes nothing
        task = self._new(caller, journal, requests, channel)
        self._put_parts(task, call, journal)
        is_unused: Condition = Absent("call")
        for _ in range(WRITE_ATTEMPTS):
            named = Change(is_unused, set={"call": task.pk, "exp": task.expires_s})
            update = Update(_index_key(caller), INDEX, named)
            if self.tasks.limit.create_with(caller.principal, task, update, place):
                return task
            index = self.tasks.store.get(_index_key(caller), INDEX)
            earlier = None if index is None else self.load(str(index["call"]))
            if earlier is not None:
                return earlier
            is_unused = Absent("call") if index is None else Equals("call", index["call"])
        raise StoreError("too_many_concurrent_updates")

    def move(
        self,
        caller: ParkedCaller,
        task: Task,
        call: TaskCall,
        journal: Journal,
        requests: Mapping[str, Mapping[str, Any]],
        end: Callable[[Task], Change],
    ) -> Task | None:
        """Park the call of a task, whose user is asked `requests` on a page, and end the task.

        `end` returns the change that ends the task, for the parked call. Returns that call, or an equal call
        that was parked first; None if the task has changed. Raises StoreError, and ItemTooLarge for an entry.
        """
        parked = self._new(caller, journal, requests, PAGE, task.issued_counts)
        self._put_parts(parked, call, journal)
        ending = Update(task.pk, TASK, end(parked))
        for _ in range(WRITE_ATTEMPTS):
            index = self.tasks.store.get(_index_key(caller), INDEX)
            earlier = None if index is None else self.load(str(index["call"]))
            if earlier is not None and not earlier.is_terminal and not _became(earlier, task):
                is_ended = self.tasks.store.update(task.pk, TASK, end(earlier)) is not None
                return earlier if is_ended else None
            is_current: Condition = Absent("call") if index is None else Equals("call", index["call"])
            named = Change(is_current, set={"call": parked.pk, "exp": parked.expires_s})
            naming = Update(_index_key(caller), INDEX, named)
            if self.tasks.limit.replace(caller.principal, task, parked, naming, ending):
                return parked
            if not ending.change.condition.holds(self.tasks.store.get(task.pk, TASK) or {}):
                return None
        raise StoreError("too_many_concurrent_updates")

    def _put_parts(self, task: Task, call: TaskCall, journal: Journal) -> None:
        """Write the items of a call that is not parked yet, all but its own; unused ones expire by TTL."""
        self.tasks.put_history(task, call, journal)
        if task.link is not None:
            self.tasks.store.put_new(link_to_item(task.link, task, call.name, task.requests))

    def _new(
        self,
        caller: ParkedCaller,
        journal: Journal,
        requests: Mapping[str, Mapping[str, Any]],
        channel: str,
        issued_counts: Mapping[str, int] = MappingProxyType({}),
    ) -> Task:
        issued = {key: issued_counts.get(key, 0) + 1 for key in requests}
        first_order = len(journal.entries) + len(journal.unused_responses)
        outstanding = {
            key: OutstandingRequest(key, journal.outstanding[key], request, order, channel)
            for order, (key, request) in enumerate(requests.items(), first_order)
        }
        has_link = bool(requests) and channel in LINKED
        return replace(
            self.tasks.new_task(caller.binding, TTL_MS, flow_id=journal.flow_id),
            status=Status.INPUT_REQUIRED if requests else Status.WORKING,
            work_state=WorkState.AWAITING if requests else WorkState.READY,
            requests=outstanding,
            issued_counts={**dict.fromkeys(journal.unused_responses, 1), **issued_counts, **issued},
            trace=journal.trace,
            link=new_token(self.tasks.random_bytes) if has_link else None,
        )

    def _is_current(self, task: Task) -> bool:
        now_ms = self.tasks.clock_ms()
        if task.is_terminal:
            return now_ms < task.updated_at_ms + RESULT_TTL_MS
        # A request that began in time may still run the call.
        is_leased = task.lease_until_ms is not None and now_ms < task.lease_until_ms
        return now_ms < task.deadline_ms or is_leased


def _became(parked: Task, task: Task) -> bool:
    return task.task_id == task_id_of(parked)


def _index_key(caller: ParkedCaller) -> str:
    return canonical.digest("mcp-rs/v1/parked-call", [caller.binding, caller.identity], size=24)
