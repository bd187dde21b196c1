"""Workers of one task in any order: killed, suspended, repeated, delivered twice, with late heartbeats.

Each worker runs in a thread that stops before every call of the store, until a rule lets it make the call.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import ENTRY, Status, Task
from mcp_roundtrip_testing.task_table import WorkerKilled
from mcp_roundtrip_testing.workers import RETRY_DELAY_S
from support.client_requests import accepted
from support.deployment import Deployment
from support.lambda_context import LambdaContext
from support.lease_lock import holds_lease_lock
from support.stored_tasks import StoredTasks
from support.three_steps import take_three_steps

WITHIN_S = 30
AT_ONCE = 3
MAX_KILLS = 4
MOMENTS_S = st.sampled_from([0.001, 20.0, 31.0, 61.0])

server = Server("properties")
on_effect: Callable[[str], str]


def effect(name: str) -> str:
    return on_effect(name)


@server.tool(task="required")
def provision(ctx: Context) -> dict[str, str]:
    return take_three_steps(ctx, effect)


class SteppedWorker:
    """A worker that makes one call of the store for each `step`, and none after it was killed."""

    def __init__(self, deployment: Deployment, pk: str, request_id: str) -> None:
        self.pk = pk
        self.request_id = request_id
        self.is_suspended = False
        self.is_over = False
        self.next_call = ""
        self.read: set[str] = set()
        self.blocks_heartbeat = False
        self._deployment = deployment
        self._killed = ""
        self._go, self._arrived = threading.Semaphore(0), threading.Semaphore(0)
        self._beat, self._has_beaten = threading.Semaphore(0), threading.Semaphore(0)
        self._heartbeat: threading.Thread | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Run until the first call."""
        self.thread.start()
        self._await_arrival()

    def step(self) -> None:
        """Make the next call, and stop before the one after it."""
        self._go.release()
        self._await_arrival()

    def finish(self) -> None:
        """Make all calls."""
        while not self.is_over:
            self.step()

    def kill(self, side: str) -> None:
        """Kill the worker before its next call or after it."""
        self._killed = side
        self.step()

    def stop_in_step(self) -> None:
        """Stop within a step, as before a call."""
        self._call(lambda: None)

    def beat(self) -> None:
        """Let the heartbeat renew the lease."""
        if self._heartbeat is None or not self._heartbeat.is_alive() or self.blocks_heartbeat:
            return
        self._beat.release()
        while self._heartbeat.is_alive() and not self._has_beaten.acquire(timeout=0.005):
            pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._deployment.store, name)
        return lambda *arguments: self._call(lambda: operation(*arguments), name)

    def query(self, pk: str) -> Any:
        rows = self._call(lambda: self._deployment.store.query(pk))
        self.read = {str(row["sk"]) for row in rows}
        return rows

    def _run(self) -> None:
        clock = self._deployment.clock
        ports = {
            "wait_ms": self._wait_ms,
            "pause_ms": lambda duration_ms: self._call(lambda: clock.advance(duration_ms / 1000)),
        }
        context = LambdaContext(clock, aws_request_id=self.request_id)
        try:
            self._deployment.by(store=self, replaced_ports=ports).work({"task": self.pk}, context)
        except WorkerKilled:
            pass
        finally:
            self.is_over = True
            self._arrived.release()

    def _await_arrival(self) -> None:
        assert self._arrived.acquire(timeout=WITHIN_S)

    def _call(self, operation: Callable[[], Any], name: str = "") -> Any:
        if threading.current_thread() is not self.thread:  # the heartbeat
            if self._killed:
                raise WorkerKilled
            return operation()
        if self._killed:
            raise WorkerKilled
        self.next_call, self.blocks_heartbeat = name, holds_lease_lock()
        self._arrived.release()
        assert self._go.acquire(timeout=WITHIN_S)
        self.blocks_heartbeat = False
        if self._killed == "before":
            raise WorkerKilled
        result = operation()
        if self._killed == "after":
            raise WorkerKilled
        return result

    def _wait_ms(self, has_ended: threading.Event, duration_ms: float) -> bool:
        if self._heartbeat is None:
            self._heartbeat = threading.current_thread()
        else:
            self._has_beaten.release()
        while not has_ended.is_set():
            if self._beat.acquire(timeout=0.002):
                return has_ended.is_set()
        return True


class WorkerStateMachine(RuleBasedStateMachine):
    """One task, its client, Lambda, and up to three workers at once."""

    def __init__(self) -> None:
        super().__init__()
        global on_effect
        on_effect = self._effect
        self.deployment = Deployment(server)
        self.clock, self.table = self.deployment.clock, self.deployment.table
        self.stored = StoredTasks(self.table)
        call = TaskCall("tools/call", "provision", {}, None, None)
        self.created = self.stored.create(call, capabilities={"elicitation": {}}, ttl_ms=10**9)
        self.pk = self.created.pk
        self.workers: list[SteppedWorker] = []
        self.retries: list[tuple[float, str]] = []
        self.invocations = 0
        self.kills = 0
        self.ran: Counter[str] = Counter()
        self.repeated: list[str] = []
        self.journal: dict[str, Any] = {}
        self.ended: Task | None = None

    @property
    def task(self) -> Task:
        return self.stored.stored(self.created)

    @property
    def running(self) -> list[SteppedWorker]:
        return [worker for worker in self.workers if not worker.is_over]

    @property
    def has_room(self) -> bool:
        return len(self.running) < AT_ONCE

    def _effect(self, name: str) -> str:
        current = threading.current_thread()
        worker = next(each for each in self.workers if each.thread is current)
        # A request of a suspended worker can arrive later, and its entry counts for both.
        if ENTRY + name in worker.read:
            self.repeated.append(name)
        self.ran[name] += 1
        value = f"{name} {self.ran[name]}"
        worker.stop_in_step()
        return value

    def _start(self, request_id: str) -> None:
        worker = SteppedWorker(self.deployment, self.pk, request_id)
        self.workers.append(worker)
        worker.start()

    def _choose(self, number: int) -> SteppedWorker:
        return self.running[number % len(self.running)]

    # Lambda

    @precondition(lambda self: self.table.dispatcher.sent and self.has_room)
    @rule()
    def deliver(self) -> None:
        self.table.dispatcher.sent.popleft()
        self.invocations += 1
        self._start(f"invocation {self.invocations}")

    @precondition(lambda self: self.running and self.has_room)
    @rule(number=st.integers(0, 2))
    def deliver_again(self, number: int) -> None:
        self._start(self._choose(number).request_id)

    @precondition(lambda self: self.retries and self.has_room)
    @rule()
    def retry(self) -> None:
        due, request_id = self.retries.pop(0)
        self.clock.advance(max(0.0, due - self.clock()))
        self._start(request_id)

    # workers

    @precondition(lambda self: self.running)
    @rule(number=st.integers(0, 2), calls=st.sampled_from([1, 1, 1, 2, 3, 5]))
    def make_calls(self, number: int, calls: int) -> None:
        worker = self._choose(number)
        for _ in range(calls):
            if not worker.is_over and not worker.is_suspended:
                worker.step()

    @precondition(
        lambda self: self.running and self.kills < MAX_KILLS
    )  # otherwise most tasks would be abandoned
    @rule(number=st.integers(0, 2), side=st.sampled_from(["before", "after"]))
    def kill(self, number: int, side: str) -> None:
        worker = self._choose(number)
        worker.kill(side)
        self.kills += 1
        self.retries.append((self.clock() + RETRY_DELAY_S, worker.request_id))

    @precondition(lambda self: self.running)
    @rule(number=st.integers(0, 2))
    def suspend_or_continue(self, number: int) -> None:
        worker = self._choose(number)
        worker.is_suspended = not worker.is_suspended

    @precondition(lambda self: self.running and self.has_room and not self.task.is_terminal)
    @rule(
        number=st.integers(0, 2),
        call=st.sampled_from(["", "put_new", "put_new_and_update", "update"]),
        calls=st.integers(0, 6),
    )
    def suspend_until_another_worker_runs(self, number: int, call: str, calls: int) -> None:
        """Suspend a worker before its next call with this name."""
        worker = self._choose(number)
        while call and worker.next_call != call and not worker.is_over:
            worker.step()
        worker.is_suspended = True
        self.clock.advance(61)
        self.poll()
        if self.table.dispatcher.sent:
            self.deliver()
            for _ in range(calls):
                if not self.workers[-1].is_over:
                    self.workers[-1].step()

    @precondition(lambda self: self.running)
    @rule(number=st.integers(0, 2), late_s=st.sampled_from([0.0, 20.0, 40.0, 59.0, 61.0]))
    def heartbeat(self, number: int, late_s: float) -> None:
        worker = self._choose(number)
        self.clock.advance(late_s)
        if not worker.is_suspended:
            worker.beat()

    @rule(seconds=MOMENTS_S)
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # the client

    @rule()
    def poll(self) -> None:
        self.stored.get(self.created)

    @precondition(lambda self: self.task.requests)
    @rule()
    def answer(self) -> None:
        answers = dict.fromkeys(self.task.requests, accepted(True))
        self.stored.tasks.update("alice", self.created.task_id, answers)

    @precondition(lambda self: len(self.workers) > 6)
    @rule()
    def cancel(self) -> None:
        self.stored.tasks.cancel("alice", self.created.task_id)

    # invariants

    @invariant()
    def a_journaled_step_does_not_run_again(self) -> None:
        assert self.repeated == []

    @invariant()
    def a_nonrepeatable_step_runs_at_most_once(self) -> None:
        assert self.ran["once"] <= 1

    @invariant()
    def journal_entries_do_not_change(self) -> None:
        rows = {str(row["sk"]): row["v"] for row in self.table.store.query(self.pk) if "v" in row}
        entries = {name: value for name, value in rows.items() if name.startswith(ENTRY)}
        assert entries.items() >= self.journal.items()
        self.journal = entries

    @invariant()
    def a_task_ends_once(self) -> None:
        task = self.task
        if self.ended is not None:
            assert (task.status, task.result) == (self.ended.status, self.ended.result)
        elif task.is_terminal:
            self.ended = task

    def teardown(self) -> None:
        """Let the task end, and then the suspended workers continue. Its result is that of its journal."""
        for _ in range(100):
            for worker in self.running:
                if not worker.is_suspended:
                    worker.finish()
            if self.task.is_terminal:
                break
            self.clock.advance(65)
            self.poll()
            if self.task.requests:
                self.answer()
            while self.table.dispatcher.sent:
                self.deliver()
                self.workers[-1].finish()
        for worker in self.running:
            worker.finish()
        self.a_journaled_step_does_not_run_again()
        self.journal_entries_do_not_change()
        self.a_task_ends_once()
        task = self.task
        assert task.is_terminal, task
        if task.status is Status.COMPLETED:
            returned = task.result["structuredContent"]
            values = {name.removeprefix(ENTRY): json.loads(str(v)) for name, v in self.journal.items()}
            assert returned == {step: values.get(step, "interrupted") for step in ("first", "once", "last")}


TestWorkerStateMachine = WorkerStateMachine.TestCase
TestWorkerStateMachine.settings = settings(max_examples=20, stateful_step_count=50)
