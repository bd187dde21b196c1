"""Run the tool of a task: acquire the lease, replay the journal, and store the outcome.

If a worker is lost, its journal entries remain, its lease expires, and its delivery is repeated, or the next
poll dispatches another worker. Late deliveries and slow clocks can make two workers run at once: they agree
on one value for each entry, and only one of them ends the task. `lease` has the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.outcomes import NeedsInput, Outcome, OwnershipLost, Sleeping
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.engine.question_channels import InputRequest
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ItemTooLarge, KeyServiceError, LeaseLost, SettingsError, StoreError
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, error_object
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import TaskHistory, put_result, read_task
from mcp_roundtrip.tasks.lease import Delivery, Lease, LeaseHeld, TaskRecorder, WaitMs, heartbeat
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task
from mcp_roundtrip.tasks.question_page_tokens import link_to_item, linked_requests, new_token
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import Change, Item, TaskStore

RETRYABLE: Final = (StoreError, KeyServiceError, SettingsError, LeaseLost)
"""Errors that say nothing about the task: another worker may not have them, or has the task already."""


class UnfinishedPass(Struct, frozen=True):
    """A pass over the tool of a task that has not ended the call."""

    run: Run
    outcome: Outcome


PassResult = Mapping[str, Any] | ProtocolError | UnfinishedPass | None
"""The result of the request that became the task, or the error that ends the task. None: the pass has parked
the call and ended the task, in one transaction."""

RunPass = Callable[[Task, TaskHistory, TaskRecorder], PassResult]
"""`TaskRunner` or `ParkedPass` of `server.stored_call_passes`, which raise one of `RETRYABLE`."""


class Worker(Struct, frozen=True):
    """Runs tasks.

    `on_error` takes a log event and an error that does not end the worker. `on_lease_lost` is called if
    another worker took the task from this one. `wait_ms` waits between two renewals.
    """

    tasks: Tasks
    run_pass: RunPass
    on_error: Callable[[str, Exception], None]
    on_lease_lost: Callable[[], None]
    wait_ms: WaitMs

    @property
    def store(self) -> TaskStore:
        return self.tasks.store

    def work(self, pk: str, delivery: Delivery) -> Task | None:
        """Run a task within a lease and return it as the pass left it; None if it could not be claimed.

        Raises LeaseHeld, and StoreError. After any exception the lease is released if possible, so that a
        retry of the delivery can claim the task.
        """
        owner = self.tasks.random_bytes(12).hex()
        lease = Lease(self.store, pk, owner, delivery, self.tasks.clock_ms, self.on_error)
        item = lease.claim()
        if item is None:
            self._on_unclaimable(pk, delivery)
            return None
        try:
            with heartbeat(lease, self.wait_ms):
                task = Task.from_item(item)
                if task.attempts > 1 and not delivery.is_message:
                    self._dispatch_next(task)
                return self._run(task, lease)
        except Exception:
            self._release(pk, lease.owner)
            raise

    def _run(self, task: Task, lease: Lease) -> Task:
        try:
            item = self._run_and_store(task, lease)
        except LeaseLost:
            item = None
        except ItemTooLarge as error:
            self.on_error("task_too_large", error)
            too_large = ProtocolError(INTERNAL_ERROR, str(error))  # for the author
            item = self.store.update(task.pk, TASK, self._end_change(task, lease.owner, too_large))
        if item is None:  # the task has ended, or another worker has it
            item = self.store.update(task.pk, TASK, transitions.stop(owner=lease.owner))
        if item is None:
            self.on_lease_lost()
        return task if item is None else Task.from_item(item)

    def _run_and_store(self, task: Task, lease: Lease) -> Item | None:
        """Run a pass and write its outcome; return None if the lease was lost. Raises LeaseLost."""
        history = TaskHistory.from_items(task, self.store.query(task.pk))
        if task.attempts > 1 and history.next_order > task.seen_entries:
            change = transitions.reset_attempts(owner=lease.owner, seen_entries=history.next_order)
            self.store.update(task.pk, TASK, change)
        recorder = TaskRecorder(task, lease, history.next_order)
        result = self.run_pass(task, history, recorder)
        if isinstance(result, UnfinishedPass):
            recorder.flush_status()
        return self._store_outcome(task, history, recorder, result)

    def _on_unclaimable(self, pk: str, delivery: Delivery) -> None:
        """Expire, abandon or dispatch again a task that has not ended. Raises LeaseHeld."""
        task, now_ms = read_task(self.store, pk), self.tasks.clock_ms()
        if task is None or task.is_terminal or self.tasks.end_if_due(task) is not None:
            return
        until_ms = task.lease_until_ms
        if task.lease_delivery == delivery.id != "" and until_ms is not None and until_ms >= now_ms:
            raise LeaseHeld(until_ms)
        self._dispatch_next(task)

    def _store_outcome(
        self, task: Task, history: TaskHistory, recorder: TaskRecorder, result: PassResult
    ) -> Item | None:
        """Write the outcome, which releases the lease; return None if the lease was lost."""
        if result is None:
            return self.store.get(task.pk, TASK)
        if not recorder.lease.may_continue():
            return None
        owner = recorder.lease.owner
        if not isinstance(result, UnfinishedPass):
            return self.store.update(task.pk, TASK, self._end_change(task, owner, result))
        accepted = accepted_keys(task, history, result.run)
        item = None
        match result.outcome:
            case OwnershipLost():
                return None
            case NeedsInput():
                item = self._await_responses(task, history, recorder, result.run, accepted)
            case Sleeping(wake_at_ms):
                change = transitions.sleep(
                    owner=owner,
                    version=task.version,
                    accepted_keys=accepted,
                    wake_at_ms=wake_at_ms,
                    now_ms=self.tasks.clock_ms(),
                )
                item = self.store.update(task.pk, TASK, change)
        if item is None:  # out of time, or a response arrived during the pass
            change = transitions.checkpoint(owner=owner, accepted_keys=accepted)
            item = self.store.update(task.pk, TASK, change)
        if item is not None:
            self._dispatch_next(Task.from_item(item))
        return item

    def _await_responses(
        self, task: Task, history: TaskHistory, recorder: TaskRecorder, run: Run, accepted: Collection[str]
    ) -> Item | None:
        issued_counts, requests = issue_requests(task, recorder, run)
        change = transitions.await_responses(
            owner=recorder.lease.owner,
            version=task.version,
            requests=requests,
            issued_counts=issued_counts,
            accepted_keys=accepted,
            now_ms=self.tasks.clock_ms(),
            wake_at_ms=run.suspension.wake_at_ms,
            link=self._link_to(task, history.call.name, requests),
        )
        try:
            return self.store.update(task.pk, TASK, change)
        except ItemTooLarge as error:
            error.add_note(f"It has the open questions of {history.call.name!r}: {', '.join(requests)}")
            raise

    def _link_to(self, task: Task, tool: str, requests: Mapping[str, OutstandingRequest]) -> str | None:
        """Return the token of a link to the requests that a page asks; None if there are none."""
        linked = linked_requests(requests)
        if not linked:
            return None
        if task.link is not None and linked.keys() == linked_requests(task.requests).keys():
            return task.link  # another branch of the tool has only slept
        token = new_token(self.tasks.random_bytes)
        self.store.put_new(link_to_item(token, task, tool, requests))
        return token

    def _dispatch_next(self, task: Task) -> None:
        """Dispatch the next worker for the time when it can claim the task.

        A task that only waits for responses needs none. A delivery during another worker's lease may be the
        last one, and so may the invocation that replaces a lost worker (see `lease`).
        """
        at_ms = task.claimable_at_ms
        if at_ms is None or not task.worker:  # the requests of its caller run a parked call
            return
        if at_ms > self.tasks.clock_ms():
            self.tasks.dispatcher.dispatch_at(task.worker, task.pk, at_ms)
        else:
            self.tasks.dispatcher.dispatch(task.worker, task.pk)

    def _end_change(self, task: Task, owner: str, body: Mapping[str, Any] | ProtocolError) -> Change:
        if isinstance(body, ProtocolError):
            return transitions.fail(owner=owner, now_ms=self.tasks.clock_ms(), error=error_object(body))
        return completion(self.tasks, task, owner, body)

    def _release(self, pk: str, owner: str) -> None:
        try:
            if self.store.update(pk, TASK, transitions.release(owner=owner)) is None:
                self.store.update(pk, TASK, transitions.stop(owner=owner))
        except StoreError:
            return  # the lease expires


MAX_ASKED: Final = 20
"""How often a question is asked. Each refused answer stays in the table, and every later pass reads it."""


def issue_requests(
    task: Task, recorder: TaskRecorder, run: Run
) -> tuple[dict[str, int], dict[str, OutstandingRequest]]:
    """Return the number of wire keys for each key, and the outstanding requests of a pass by wire key."""
    issued, requests = dict(task.issued_counts), dict[str, OutstandingRequest]()
    outstanding = {asked.key: wire_key for wire_key, asked in task.requests.items()}
    for order, (key, request) in enumerate(run.requests.items(), recorder.next_order):
        present = outstanding.get(key)
        if present is not None and _is_unchanged(task.requests[present], request):
            requests[present] = task.requests[present]
            continue
        issued[key] = issued.get(key, 0) + 1
        # A wire key is used for one request in the task's lifetime. Keys of authors do not contain "~".
        wire_key = key if issued[key] == 1 else f"{key}~{issued[key]}"
        requests[wire_key] = OutstandingRequest(
            key, request.fingerprint, request.to_wire(), order, request.channel
        )
    return issued, requests


def key_asked_too_often(task: Task, run: Run) -> str | None:
    """Return the key of a question that the pass asks more than `MAX_ASKED` times; None if there is none."""
    open_requests = {asked.key: asked for asked in task.requests.values()}
    for key, request in run.requests.items():
        asked = open_requests.get(key)
        is_new = asked is None or not _is_unchanged(asked, request)
        if is_new and task.issued_counts.get(key, 0) >= MAX_ASKED:
            return key
    return None


def _is_unchanged(asked: OutstandingRequest, request: InputRequest) -> bool:
    return (asked.fingerprint, asked.channel) == (request.fingerprint, request.channel)


def completion(
    tasks: Tasks, task: Task, owner: str, result: Mapping[str, Any], *, version: int | None = None
) -> Change:
    """Store the chunks of a result; return the change that completes the task with it. Raises StoreError.

    With `version`, a response during the pass prevents the change.
    """
    attributes = put_result(tasks.store, task, owner, result)
    return transitions.complete(owner=owner, now_ms=tasks.clock_ms(), attributes=attributes, version=version)


def accepted_keys(task: Task, history: TaskHistory, run: Run) -> set[str]:
    """Return the sort keys, without prefix, of the responses that the journal contains."""
    taken = {
        sort_key
        for key, sort_key in history.response_keys.items()
        if (entry := run.history.entry(key)) is not None and entry.kind is Kind.ANSWER
    }
    return taken | set(task.accepted_keys)
