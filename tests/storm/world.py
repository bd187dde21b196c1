"""One task with its client, its table, its deployment and its lost workers, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.tasks.model import ENTRY, TASK, Task, WorkState
from mcp_roundtrip.tasks.related_items import Flow, TaskCall
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore, WorkerKilled
from mcp_roundtrip_testing.workers import NEVER
from storm.deployment import Delivery, Deployment
from storm.function import OUT_OF_MEMORY, STEPS
from storm.processes import Launcher, Thread, WorkerProcess
from storm.virtual_time import VirtualTime

T = TypeVar("T")

POLL_S = 5.0
LIMIT_S = 3 * 3600.0
ANSWER = {"action": "accept", "content": {"value": True}}


class End(StrEnum):
    """How a worker process ends, or pauses."""

    KILL = "SIGKILL"
    MEMORY = OUT_OF_MEMORY
    TIMEOUT = "timeout"
    STOP = "SIGSTOP"


STOPPED_S = 200.0
"""How long a process stops that is lost by `End.STOP`."""


@dataclass(frozen=True)
class Loss:
    """The loss of the process that makes the call number `place` (from 0, over all workers of the task).

    It is lost before the coordinator performs the call, or after; a process that is lost in a step, `after_s`
    after its beginning. The calls of heartbeats are counted on their own.
    """

    end: End
    place: int
    side: str = "before"
    after_s: float = 0.0
    in_heartbeat: bool = False
    """Whether it is lost in a call of its heartbeat."""


@dataclass(frozen=True)
class Event:
    """Something that a process did, or that happened to it. `pid` is 0 for the client."""

    kind: str
    at_s: float
    pid: int
    name: str = ""
    detail: str = ""


@dataclass
class World:
    """One task. Use it as a context manager."""

    delivery: Delivery = Delivery.INVOKE
    polls: bool = True
    loss: Loss | None = None
    events: list[Event] = field(default_factory=list)
    store: TaskStore = field(default_factory=MemoryStore)
    steps: Mapping[str, float] = field(default_factory=lambda: STEPS)
    """The seconds that each step takes."""
    lease_ms: int = 60_000
    heartbeat_delay_s: float = 0.0
    """How late each heartbeat of the first process is."""
    deliveries: int = 1
    """How often each dispatch is delivered at the same time."""
    lost_request: tuple[int, bool] | None = None
    """Which of the clients' calls of the table (from 0) loses its request, and whether after the call."""
    on_step: Callable[[str, WorkerProcess], None] = lambda name, process: None
    """Called when a worker begins a step."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="storm-")))
        self.time = VirtualTime(folder / "time")
        self._stack.callback(self.time.close)
        self._calls = {"call": 0, "heartbeat": 0}
        launcher = Launcher(self.time, folder, self._answer, self.heartbeat_delay_s)
        self._stack.callback(launcher.close)
        self.deployment = Deployment(self.delivery, self.deliveries, self.time, launcher.launch)
        self._stack.callback(self.deployment.close)
        self.tasks = Tasks(self.store, self.deployment, self.time.now_ms)
        self.client_store = CrashingStore(self.store, *(self.lost_request or (NEVER, False)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    # -- the task ---------------------------------------------------------------------------------------

    def create(self) -> None:
        """Create the task in the second round of a flow, and start its client."""
        flow = Flow(None, token_hex(16), int(self.time.now_s() + LIMIT_S))
        created = self._send(lambda tasks: tasks.find(flow) or self._create(tasks, flow))
        self.pk, self.task_id = created.pk, created.task_id
        self.time.call_at(self.time.now_s() + POLL_S, self._look)

    def _create(self, tasks: Tasks, flow: Flow) -> Task:
        return tasks.create(
            TaskCall("tools/call", "provision", {}, None, None),
            flow.principal,
            Journal(flow.id),
            worker="w",
            capabilities={"elicitation": {}},
            ttl_ms=int(LIMIT_S) * 1000,
            flow=flow,
        )

    def _send(self, request: Callable[[Tasks], T]) -> T:
        """Return the result of a client's request. The client sends it again if its process is lost."""
        try:
            return request(Tasks(self.client_store, self.deployment, self.time.now_ms))
        except WorkerKilled:
            self.client_store = CrashingStore(self.store, NEVER, is_done=False)
            return self._send(request)

    def run(self) -> Task:
        """Create the task, and let it run until it has ended and no worker runs."""
        self.create()
        self.time.run_until(lambda: False, LIMIT_S)
        return self.task

    @property
    def task(self) -> Task:
        item = self.store.get(self.pk, TASK)
        assert item is not None
        return Task.from_item(item)

    @property
    def journal(self) -> dict[str, Any]:
        rows = self.store.query(self.pk)
        return {
            str(row["sk"]).removeprefix(ENTRY): json.loads(str(row["v"]))
            for row in rows
            if str(row["sk"]).startswith(ENTRY)
        }

    def _look(self) -> None:
        """Poll, and answer questions. A client that does not poll is notified of questions."""
        task = self.tasks.get(None, self.task_id) if self.polls else self.task
        if task.is_terminal:
            return
        if task.requests and task.work_state is WorkState.AWAITING:
            answers = dict.fromkeys(task.requests, ANSWER)
            self._send(lambda tasks: tasks.update(None, self.task_id, answers))
        self.time.call_at(self.time.now_s() + POLL_S, self._look)

    # -- calls of workers -------------------------------------------------------------------------------

    def note(self, kind: str, process: WorkerProcess | None, name: str = "", detail: str = "") -> None:
        self.events.append(Event(kind, self.time.now_s(), process.pid if process else 0, name, detail))

    def _answer(self, thread: Thread, name: str, *arguments: Any) -> None:
        process, thread.blocks_heartbeat = thread.process, False
        match name:
            case "hello":
                thread.reply(None)
                return
            case "limits":
                thread.reply((process.deadline_ms, self.lease_ms))
                return
            case "begin_step" | "end_step":
                step = str(arguments[0])
                self.note(name, process, *arguments)
                if name == "begin_step":
                    self.on_step(step, process)
                call: Callable[[], Any] = lambda: self.steps[step]  # noqa: E731
                label = f"{name} {step}"
            case "store":
                thread.blocks_heartbeat, operation, *rest = arguments
                call = lambda: self._call_store(process, operation, rest)  # noqa: E731
                label = _call_name(operation, rest)
            case "dispatch" | "dispatch_at":
                call = lambda: getattr(self.deployment, name)(*arguments)  # noqa: E731
                label = name
            case "hide_message":
                _, handle, seconds = arguments
                call = lambda: self.deployment.sqs(  # noqa: E731
                    "ChangeMessageVisibility", ReceiptHandle=handle, VisibilityTimeout=seconds
                )
                label = name
        self._perform(thread, label, call)

    def _perform(self, thread: Thread, label: str, call: Callable[[], Any]) -> None:
        kind = "call" if thread.is_main else "heartbeat"
        number = self._calls[kind]
        self._calls[kind] += 1
        self.note(kind, thread.process, label)
        if self._is_lost(thread, number, "before", label, call):
            return
        try:
            result = call()
        except Exception as error:
            result = error
        if self._is_lost(thread, number, "after", label, lambda: result):
            return
        thread.reply(result)

    def _is_lost(self, thread: Thread, number: int, side: str, label: str, result: Callable[[], Any]) -> bool:
        loss, process = self.loss, thread.process
        place = (number, side, not thread.is_main)
        if loss is None or (loss.place, loss.side, loss.in_heartbeat) != place:
            return False
        match loss.end:
            case End.KILL if loss.after_s:
                self.time.call_at(self.time.now_s() + loss.after_s, lambda: self.kill(process, label))
                return False
            case End.KILL:
                self.kill(process, label)
            case End.MEMORY:
                self._note_loss(process, label)
                process.expect_exit()
                thread.reply(OUT_OF_MEMORY)
            case End.TIMEOUT:
                at_s = process.deadline_ms / 1000
                self.time.call_at(at_s, lambda: self._note_loss(process, label))
                with process.lock:
                    thread.wait()
            case End.STOP:
                with process.lock:
                    thread.wait()
                    process.due.append((thread, result))
                self.stop(process, 0, STOPPED_S, label)
        return True

    def stop(self, process: WorkerProcess, after_s: float, duration_s: float, label: str = "") -> None:
        """Stop a process after some time, for some time."""

        def stop() -> None:
            self.note("stopped", process, label)
            process.stop()

        def resume() -> None:
            if not process.has_exited.is_set():
                self.note("continued", process)
                process.resume()

        at_s = self.time.now_s() + after_s
        if after_s:
            self.time.call_at(at_s, stop)
        else:
            stop()
        self.time.call_at(at_s + duration_s, resume)

    def kill(self, process: WorkerProcess, label: str) -> None:
        self._note_loss(process, label)
        process.kill()

    def _note_loss(self, process: WorkerProcess, label: str) -> None:
        """Record the loss of a worker, and whether its task needs another one."""
        needs_worker = self.task.work_state in (WorkState.READY, WorkState.LEASED)
        self.note("lost", process, label, "needs a worker" if needs_worker else "")

    def _call_store(self, process: WorkerProcess, operation: str, arguments: list[Any]) -> Any:
        before = self.task if hasattr(self, "pk") else None
        result = getattr(self.store, operation)(*arguments)
        is_written = (result is None) if operation == "put_new" else bool(result)
        if operation not in ("get", "query") and is_written:
            self.note("written", process, _call_name(operation, arguments))
            after = self.task
            if before is not None and after.lease_owner not in (None, before.lease_owner):
                self.note("claimed", process, str(after.lease_owner))
            if after.is_terminal and before is not None and not before.is_terminal:
                self.note("ended", process, after.status)
        return result


def _call_name(operation: str, arguments: list[Any]) -> str:
    match operation:
        case "query":
            return operation
        case "put_new" | "put_new_and_update":
            return f"{operation} {arguments[0]['sk']}"
    return f"{operation} {arguments[1]}"
