"""Create, get, update and cancel tasks for clients.

`get` also dispatches a worker for a task whose worker was lost or whose sleep ended.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.internal_errors import FlowIsStored, StoreError
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.protocol.input_responses import read_response
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import (
    Flow,
    TaskCall,
    is_stored,
    name_task,
    named_task,
    put_history,
    put_result,
    read_task,
    response_to_item,
    with_result,
)
from mcp_roundtrip.tasks.lost_workers import Watchdog
from mcp_roundtrip.tasks.model import (
    CLIENT,
    RETENTION_MS,
    TASK,
    Status,
    Task,
    WorkState,
    task_id_in,
    task_partition_key,
)
from mcp_roundtrip.tasks.open_task_limit import WRITE_ATTEMPTS, Owner, TaskLimit, TooManyOpenTasks


class UnknownTask(McpRoundtripError):
    """The caller has no task with this id."""


class Tasks(Watchdog, frozen=True):
    """The tasks of one dialect: of the tasks extension, of SEP-2322, or parked calls.

    No new task lives longer than `max_ttl_ms`. A user has at most `max_open` open tasks, in all dialects
    together (see `open_task_limit`); 0 is no limit. `on_dispatch_failed` takes a task, and the error.
    """

    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    on_dispatch_failed: Callable[[Task, StoreError], None] = lambda task, error: None
    dialect: str = "extension"
    max_ttl_ms: float = float("inf")
    max_open: int = 0

    @property
    def limit(self) -> TaskLimit:
        return TaskLimit(self.store, self.clock_ms, self.max_open)

    def create(
        self,
        call: TaskCall,
        owner: Owner,
        journal: Journal,
        *,
        worker: str,
        capabilities: Mapping[str, Any],
        ttl_ms: int,
        flow: Flow | None = None,
        continued: Task | None = None,
        created_in: str | None = None,
    ) -> Task:
        """Write a task and dispatch its worker.

        `flow`: the client has a state of the call. `continued`: the parked call that becomes the task, which
        a pass that crashed may have written already. `created_in`: the current span context, if traced.

        The item M is written last. Until then there is no task, and the items already written expire by TTL.
        Raises FlowIsStored, TooManyOpenTasks, and ItemTooLarge for the call or an entry.
        """
        task_id = None if continued is None else task_id_of(continued)
        new = self.new_task(
            owner.principal, ttl_ms, worker=worker, flow_id=journal.flow_id, task_id=task_id, flow=flow
        )
        task = replace(
            new,
            capabilities=capabilities,
            issued_counts=dict.fromkeys(journal.unused_responses, 1),
            trace=journal.trace,
            created_in=created_in,
        )
        if continued is None:
            self._create_first(owner, task, call, journal, flow)
        else:
            if (present := read_task(self.store, task.pk)) is not None:
                return present
            task = replace(
                task,
                issued_counts={**task.issued_counts, **continued.issued_counts},
                expires_s=max(task.expires_s, continued.expires_s),  # the parked call outlives its flow
            )
            put_history(self.store, task, call, journal)
            self.limit.replace(owner, continued, task, is_counted=True)
        self._dispatch(task)
        return task

    def _create_first(
        self, owner: Owner, task: Task, call: TaskCall, journal: Journal, flow: Flow | None
    ) -> None:
        """Write a task that continues no parked call. Raises as `create`."""
        naming = [] if flow is None else [name_task(flow.index_key, task)]
        try:
            self.limit.check(owner)  # a call that is refused writes nothing
            put_history(self.store, task, call, journal)
            if self.limit.create(owner, task, *naming):
                raise FlowIsStored
        except TooManyOpenTasks:
            if is_stored(self.store, flow):  # the open task may be that of a concurrent round
                raise FlowIsStored from None
            raise

    def find(self, flow: Flow) -> Task | None:
        """Return the task, of any dialect, as which a flow continues. Dispatch it if its worker was lost."""
        pk = named_task(self.store, flow.index_key)
        task = None if pk is None else read_task(self.store, pk)
        if task is not None and task.is_terminal and not task.worker:  # it may have become a task
            successor = self._partition_key(flow.principal, task_id_of(task))
            task = read_task(self.store, successor) or task
        return task if task is None or not task.worker else self._refresh(task)

    def create_completed(self, principal: str | None, result: Mapping[str, Any], *, ttl_ms: int) -> Task:
        task = replace(self.new_task(principal, ttl_ms), status=Status.COMPLETED, work_state=WorkState.DONE)
        self.store.put_new({**task.to_item(), **put_result(self.store, task, "", result)})
        return replace(task, result=result)

    def get(self, principal: str | None, task_id: str) -> Task:
        """Return the current task with its result. Raises UnknownTask."""
        return with_result(self.store, self._refresh(self._read(self._partition_key(principal, task_id))))

    def _refresh(self, task: Task) -> Task:
        """Expire, abandon or dispatch the task if that is due, and return it."""
        if (ended := self.end_if_due(task)) is not None:
            return ended
        try:
            self.redispatch_if_stale(task, self.clock_ms())
        except StoreError as error:  # the task can still be returned
            self.on_dispatch_failed(task, error)
        return task

    def update(self, principal: str | None, task_id: str, responses: Mapping[str, Any]) -> None:
        self.store_responses(self._partition_key(principal, task_id), responses, channels=(CLIENT,))

    def store_responses(
        self,
        pk: str,
        responses: Mapping[str, Any],
        *,
        channels: Collection[str],
        via: str = CLIENT,
        is_form: bool = False,
    ) -> bool:
        """Store responses to outstanding requests of these channels; return whether this call has stored any.

        Each response is an item of its own, and the change of the task's item makes all of them count. So a
        call that fails, or is overtaken, has stored nothing. The responses to other requests are ignored;
        those of a form are stored only if all its requests are outstanding. `via` is the channel through
        which they came: a question of an app can be answered on the page. Raises UnknownTask, ItemTooLarge
        for a response, and MalformedInputResponse if one of them is no result of its request.
        """
        submission = self.random_bytes(8).hex()
        for _ in range(WRITE_ATTEMPTS):
            task = self._read(pk)
            asked = {key: each for key, each in task.requests.items() if each.channel in channels}
            answered = [key for key in asked if key in responses]
            if task.status is not Status.INPUT_REQUIRED or not answered:
                return False
            if is_form and len(answered) < len(responses):
                return False
            read = {key: read_response(key, asked[key].request, responses[key]) for key in answered}
            self.store.put_all_new(
                [response_to_item(task, key, asked[key], read[key], via, submission) for key in sorted(read)]
            )
            left = {key: each for key, each in task.requests.items() if key not in read}
            is_leased = task.work_state is WorkState.LEASED
            change = transitions.accept_responses(
                version=task.version,
                requests=left,
                submissions={**task.submissions, **dict.fromkeys(answered, submission)},
                is_leased=is_leased,
                now_ms=self.clock_ms(),
            )
            if self.store.update(task.pk, TASK, change) is not None:
                if not left and not is_leased:
                    self._dispatch(task)
                return True
        raise StoreError("too_many_concurrent_updates")

    def cancel(self, principal: str | None, task_id: str) -> Task | None:
        """End the task; return None if it had ended. Raises UnknownTask."""
        task = self._read(self._partition_key(principal, task_id))
        item = self.store.update(task.pk, TASK, transitions.cancel(now_ms=self.clock_ms()))
        return None if item is None else Task.from_item(item)

    def new_task(
        self,
        principal: str | None,
        ttl_ms: int,
        worker: str = "",
        flow_id: str = "",
        task_id: str | None = None,
        flow: Flow | None = None,
    ) -> Task:
        """Return a task that is not stored yet, with a random id by default. Its item outlives its flow."""
        task_id = task_id or urlsafe_b64encode(self.random_bytes(24)).decode()
        now_ms = self.clock_ms()
        ttl_ms = int(min(ttl_ms, self.max_ttl_ms))
        expires_s = (now_ms + ttl_ms + RETENTION_MS) // 1000
        return Task(
            pk=self._partition_key(principal, task_id),
            status=Status.WORKING,
            work_state=WorkState.READY,
            version=1,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            ttl_ms=ttl_ms,
            expires_s=expires_s if flow is None else max(expires_s, flow.ends_at_s),
            worker=worker,
            flow_id=flow_id,
            capabilities={},
            requests={},
            accepted_keys=(),
            issued_counts={},
            attempts=0,
            dispatched_at_ms=now_ms,
            dispatch_count=0,
            dialect=self.dialect,
        )

    def _partition_key(self, principal: str | None, task_id: str) -> str:
        pk = task_partition_key(self.dialect, principal, task_id)
        if pk is None:
            raise UnknownTask(task_id)
        return pk

    def _read(self, pk: str) -> Task:
        task = read_task(self.store, pk)
        # DynamoDB deletes expired items late.
        if task is None or task.expires_s * 1000 <= self.clock_ms():
            raise UnknownTask(task_id_in(pk))
        return task

    def _dispatch(self, task: Task) -> None:
        if not task.worker:  # a parked call: its caller's next call runs it
            return
        try:
            self.dispatcher.dispatch(task.worker, task.pk)
        except StoreError as error:
            self.on_dispatch_failed(task, error)  # the next poll dispatches again


def task_id_of(parked: Task) -> str:
    """Return the id of the task that a parked call becomes."""
    return strict_json.digest("mcp-rs/v1/task-of-parked-call", parked.pk, size=24)
