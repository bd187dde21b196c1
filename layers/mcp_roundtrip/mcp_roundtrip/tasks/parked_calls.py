"""Parked calls: calls that wait in the task table for answers, without a worker.

A parked call is a task of the dialect `parked`. Its client calls the same tool with the same arguments again.
So an item under the identity of the call, which is a digest of caller, tool and arguments, names the task
(`call_and_journal_items`). A client that has a state of the call can also send that again.

Each task has a random id, so a call that starts from its beginning never meets the journal of an earlier one.
The model of an anonymous caller passes the id on as a code: the key of the task follows from it, the tool and
the arguments. So a code finds one call, and nothing with another tool or other arguments.

A task whose question its client cannot show is moved: the call is parked with its journal, and the task ends,
in one transaction. A parked call that becomes a task names it by its own key, so a pass after a crash finds
the same task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_roundtrip.internal_errors import FlowIsStored, StoreError
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.protocol.capabilities import declares_required
from mcp_roundtrip.protocol.jsonrpc import CHANGED_KEY, without_null_members
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import (
    Flow,
    TaskCall,
    is_stored,
    name_task,
    named_task,
    put_history,
    read_task,
    stored_responses,
)
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Status, Task, WorkState, task_partition_key
from mcp_roundtrip.tasks.open_task_limit import WRITE_ATTEMPTS, Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.question_page_tokens import APP, LINKED, PAGE, link_to_item, new_token
from mcp_roundtrip.tasks.service import Tasks, task_id_of
from mcp_roundtrip.tasks.store_interface import Change, Update

PARKED: Final = "parked"

TTL_MS: Final = 3_600_000
"""The time for which a parked call waits."""

RESULT_TTL_MS: Final = 60_000
"""The time for which a result is returned again: its response may have been lost."""


class ParkedCaller(Struct, frozen=True):
    """A caller, and its call.

    `binding` owns the task: the caller's principal, or for an anonymous caller the call. `principal` is the
    one whose open tasks are limited, None for an anonymous caller. `identity` is the digest of the call.
    `session` identifies an anonymous caller who has one, `code` is what its model has passed on.
    """

    binding: str
    principal: str | None
    identity: str
    session: str | None = None
    code: str | None = None

    @property
    def index_key(self) -> str | None:
        """The partition key of the item that names the task; None for callers who cannot be recognized."""
        caller = self.session if self.principal is None else self.binding
        if caller is None:
            return None
        return strict_json.digest("mcp-rs/v1/parked-call", [caller, self.identity], size=24)

    def owner_of(self, task: Task) -> Owner:
        return Owner(self.principal, self.session, task.flow_id)

    def naming(self, task: Task, instead_of: str | None) -> list[Update]:
        return [] if self.index_key is None else [name_task(self.index_key, task, instead_of)]


class ParkedCalls(Struct, frozen=True):
    """Finds and creates parked calls. `declared`: the capabilities of the client that makes the call now."""

    tasks: Tasks
    declared: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, tasks: Tasks, declared: Mapping[str, Any] = MappingProxyType({})) -> ParkedCalls:
        return cls(replace(tasks, dialect=PARKED), declared)

    def find(self, caller: ParkedCaller) -> Task | None:
        """Return the task of the caller's call; None if there is none to continue."""
        if caller.code is None:
            return self.load(self._named(caller))
        return self.load(task_partition_key(PARKED, caller.binding, caller.code))

    def _named(self, caller: ParkedCaller) -> str | None:
        return None if caller.index_key is None else named_task(self.tasks.store, caller.index_key)

    def load(self, pk: str | None) -> Task | None:
        """Return a task; None if it does not exist, or is so old that its call starts from the beginning."""
        task = None if pk is None else read_task(self.tasks.store, pk)
        return task if task is not None and self._is_current(task) else None

    def create(
        self,
        caller: ParkedCaller,
        call: TaskCall,
        journal: Journal,
        requests: Mapping[str, Mapping[str, Any]],
        channel: str,
        flow: Flow | None = None,
    ) -> Task:
        """Park a call and return its task, or the task of a request of this call that was parked first.

        `requests` are InputRequest objects by key; without any, the call was out of time. Raises
        FlowIsStored, TooManyOpenTasks, and ItemTooLarge for the arguments or an entry.
        """
        task = self._new(caller, journal, requests, channel, flow=flow)
        try:
            if requests:
                self.tasks.limit.check(caller.owner_of(task))  # a call that is refused writes nothing
            self._put_parts(task, call, journal)
            return self._create_first(caller, task, flow)
        except TooManyOpenTasks:  # the open task may be that of an earlier request of this call
            if is_stored(self.tasks.store, flow):
                raise FlowIsStored from None
            present = self.find(caller)
            if present is None:
                raise
            return present

    def _create_first(self, caller: ParkedCaller, task: Task, flow: Flow | None) -> Task:
        """Write the item of a call whose parts are written, unless it was parked before; return its task."""
        of_flow = [] if flow is None else [name_task(flow.index_key, task)]
        # A call that asks nothing does not count: nothing runs it for now.
        write = (
            partial(self.tasks.limit.create, caller.owner_of(task)) if task.requests else self.tasks.limit.put
        )
        earlier_pk: str | None = None
        for _ in range(WRITE_ATTEMPTS):
            if not write(task, *caller.naming(task, earlier_pk), *of_flow):
                return task
            if is_stored(self.tasks.store, flow):
                raise FlowIsStored
            earlier_pk = self._named(caller)
            if (earlier := self.load(earlier_pk)) is not None:
                return earlier
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
        that was parked first; None if the task has changed, or an equal call was parked at the same time.
        Raises ItemTooLarge for an entry.
        """
        parked = self._new(caller, journal, requests, PAGE, task.issued_counts)
        self._put_parts(parked, call, journal)
        earlier_pk = self._named(caller)
        earlier = self.load(earlier_pk)
        became_task = earlier is not None and task.task_id == task_id_of(earlier)
        if earlier is not None and not earlier.is_terminal and not became_task:
            is_ended = self.tasks.store.update(task.pk, TASK, end(earlier)) is not None
            return earlier if is_ended else None
        updates = (*caller.naming(parked, earlier_pk), Update(task.pk, TASK, end(parked)))
        unmet = self.tasks.limit.replace(caller.owner_of(task), task, parked, *updates, is_counted=False)
        return None if unmet else parked

    def withdraw(self, task: Task) -> Task | None:
        """Withdraw the open requests, so that a pass asks them again; return None if the task has changed."""
        change = transitions.accept_responses(
            version=task.version,
            requests={},
            submissions=task.submissions,
            is_leased=task.work_state is WorkState.LEASED,
            now_ms=self.tasks.clock_ms(),
        )
        item = self.tasks.store.update(task.pk, TASK, change)
        return None if item is None else Task.from_item(item)

    def answer(self, task: Task, answers: Mapping[str, Any], via: str) -> bool:
        """Store answers of the user (ElicitResult objects by wire key) that came through the channel `via`.

        A view answers all open questions or none; a client may answer some of them. Returns False if other
        answers to these questions were stored before. Raises ItemTooLarge for an answer.
        """
        is_form, asked = via == APP, task.requests.keys()
        channels = {each.channel for each in task.requests.values()}
        given = {key: answers[key] for key in asked & answers.keys()}
        may_be_stored = not is_form or given.keys() == asked
        if may_be_stored and self.tasks.store_responses(
            task.pk, given, channels=channels, via=via, is_form=is_form
        ):
            return True
        stored = stored_responses(self.tasks.store, task.pk, answers)
        # A member that is null counts as absent, and is not stored.
        sent = {key: without_null_members(answers[key]) for key in stored if isinstance(answers[key], dict)}
        return all(strict_json.is_same_json(raw, sent.get(key, answers[key])) for key, raw in stored.items())

    def _put_parts(self, task: Task, call: TaskCall, journal: Journal) -> None:
        """Write the items of a call that is not parked yet, all but its own; unused ones expire by TTL."""
        put_history(self.tasks.store, task, call, journal)
        if task.link is not None:
            self.tasks.store.put_new(link_to_item(task.link, task, call.name, task.requests))

    def _new(
        self,
        caller: ParkedCaller,
        journal: Journal,
        requests: Mapping[str, Mapping[str, Any]],
        channel: str,
        issued_counts: Mapping[str, int] = MappingProxyType({}),
        flow: Flow | None = None,
    ) -> Task:
        issued = {key: issued_counts.get(key, 0) + 1 for key in requests}
        first_order = len(journal.entries) + len(journal.unused_responses)
        outstanding = {
            key: OutstandingRequest(key, journal.outstanding[key], request, order, channel)
            for order, (key, request) in enumerate(requests.items(), first_order)
        }
        has_link = bool(requests) and channel in LINKED
        return replace(
            self.tasks.new_task(caller.binding, TTL_MS, flow_id=journal.flow_id, flow=flow),
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
            is_result = not self._declares_what_lacked(task) and not _has_drifted(task)
            return is_result and now_ms < task.updated_at_ms + RESULT_TTL_MS
        # A request that began in time may still run the call.
        is_leased = task.lease_until_ms is not None and now_ms < task.lease_until_ms
        return now_ms < task.deadline_ms or is_leased

    def _declares_what_lacked(self, task: Task) -> bool:
        """Return whether a call has ended with -32021 for capabilities that the client declares now."""
        if task.error is None or task.error["code"] != MISSING_REQUIRED_CLIENT_CAPABILITY:
            return False
        return declares_required(self.declared, task.error["data"]["requiredCapabilities"])


def _has_drifted(task: Task) -> bool:
    """Return whether a call has ended because its tool changed, so that its next call is a new one."""
    return task.error is not None and CHANGED_KEY in task.error.get("data", {})
