"""A task and its workers, of which some are lost, in virtual time.

Lambda's retries and the queue are those of the local runner. Time passes only while a worker takes a step or
waits, and while none runs. Meanwhile other workers may run.
"""

import contextvars
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.client_interface import AwsError
from mcp_roundtrip.aws.lambda_and_sqs import AwsDispatcher
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.model import ENTRY, TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import Item
from mcp_roundtrip_testing import make_ports
from mcp_roundtrip_testing.task_table import MemoryStore, WorkerKilled
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.template.model import Function, Queue
from support.aws_clients import OneClient
from support.client_requests import accepted
from support.manual_timers import ManualTimers
from support.stored_tasks import CALL
from support.task_tools import take_three_steps

STEPS = {"first": 50, "once": 5, "last": 50}
"""The steps, with the seconds that each takes. Leases are renewed during the long ones."""

TIMEOUT_S = 900
LIMIT_S = 3 * 3600
POLL_S = 5
FUNCTION = Function("Worker", "", Path("/"), (), {}, TIMEOUT_S, 1024)
QUEUE_URL = "/Tasks"
QUEUE = Queue("Tasks", "Worker", visibility_timeout_s=930, max_receives=12)


@dataclass
class Worker:
    """The process of one invocation, and its Lambda context."""

    timers: ManualTimers
    aws_request_id: str
    on_killed: Callable[[], None]
    is_killed: bool = False
    stopped_until_s: float = 0.0
    ended_beat: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.deadline_s = self.timers.now_s() + TIMEOUT_S

    def get_remaining_time_in_millis(self) -> int:
        return int((self.deadline_s - self.timers.now_s()) * 1000)

    def kill(self) -> None:
        """Let the process end. Its threads notice that when they continue."""
        if not self.is_killed:
            self.is_killed = True
            self.on_killed()

    def live(self) -> None:
        """End the calling thread if the process has been killed, or its time is over."""
        if self.timers.now_s() >= self.deadline_s:
            self.kill()
        if self.is_killed:
            raise StoreError("killed") if in_heartbeat() else WorkerKilled

    def pass_time(self, seconds: float) -> None:
        """Let time pass, second by second, until the end of the process."""
        end_s = self.timers.now_s() + seconds
        while (left_s := end_s - self.timers.now_s()) > 0:
            self.timers.advance(min(left_s, 1.0))
            self.live()

    def stop(self, seconds: float) -> None:
        self.stopped_until_s = self.timers.now_s() + seconds
        self.timers.advance(seconds)

    def wait_ms(self, has_ended: threading.Event, duration_ms: float) -> bool:
        """Wait in the thread that renews the lease, until the pass has ended or time has passed."""
        is_due, thread = threading.Event(), threading.current_thread()

        def beat() -> None:
            if self.timers.now_s() <= self.stopped_until_s:
                self.timers.call_at(self.stopped_until_s + 0.001, beat)
                return
            self.ended_beat.clear()
            is_due.set()
            while thread.is_alive() and not self.ended_beat.wait(0.001):
                pass

        self.timers.call_at(self.timers.now_s() + duration_ms / 1000, beat)
        self.ended_beat.set()
        while not is_due.is_set() and not has_ended.wait(0.001):
            pass
        return has_ended.is_set()


def in_heartbeat() -> bool:
    """Whether the calling thread renews the lease of a worker."""
    return threading.current_thread().name == "lease"


@dataclass(frozen=True)
class Loss:
    """A worker is lost at a call: before or after the one with this number, counted over all workers.

    The calls of heartbeats are counted on their own.
    """

    call: int
    is_done: bool
    in_heartbeat: bool = False


@dataclass
class World:
    """One task with its client, its table and its workers."""

    delivery: str = "invoke"
    polls: bool = True
    loss: Loss | None = None
    stopped_s: int = 0
    """How long the process of the lost worker stops. 0 if it is killed."""
    deliveries: int = 1
    """How often each invocation is delivered at the same time."""
    on_step: Callable[[Worker, str], None] = lambda worker, step: None

    calls: dict[bool, list[str]] = field(default_factory=lambda: {False: [], True: []})
    lost: list[tuple[float, bool]] = field(default_factory=list)
    """The times at which workers were lost, and whether the task needed one then."""
    claims: list[tuple[float, Worker]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    """The steps that began after their result was in the journal."""
    acts: list[tuple[Worker, str]] = field(default_factory=list)
    """The writes of workers and the steps that they began, and the end of a worker's stop."""
    ended: list[Status] = field(default_factory=list)
    _read: tuple[Item, Task] | None = None
    """The item of the task when it was last read, and the task."""

    def __post_init__(self) -> None:
        self.timers, self.store = ManualTimers(), MemoryStore()
        self.working: list[Worker] = []
        self.server = Server("jobs")

        @self.server.tool(task="required")
        def provision(ctx: Context) -> dict[str, str]:
            return take_three_steps(ctx, self.take_step)

        functions, queues = {"Worker": FUNCTION}, {"Tasks": QUEUE}
        self.invocations = AsyncInvocations(
            lambda: functions, self.run_worker, lambda arn, body: True, self.timers, lambda line: None
        )
        self.queues = Queues(lambda: queues, self.run_worker, lambda line: None, self.timers)
        self.dispatcher = AwsDispatcher(OneClient(self), self.now_ms, QUEUE_URL)
        self.tasks = Tasks(self.store, self.dispatcher, self.now_ms)

    def now_ms(self) -> int:
        return round(self.timers.now_s() * 1000)

    def play(self) -> "World":
        """Create the task, and let time pass until it has ended and no worker runs."""
        call = replace(CALL, name="provision", arguments={})
        self.pk = self.tasks.create(
            call,
            Owner(None, None, "flow"),
            Journal("flow"),
            worker=QUEUE_URL if self.delivery == "queue" else "arn:worker",
            capabilities={"elicitation": {}},
            ttl_ms=LIMIT_S * 1000,
        ).pk
        self.timers.call_at(self.timers.now_s() + POLL_S, self.look)
        self.timers.advance(LIMIT_S)
        return self

    def look(self) -> None:
        """Poll and answer questions, repeatedly. A client that does not poll is notified of questions."""
        task = self.tasks.get(None, self.task.task_id) if self.polls else self.task
        if task.is_terminal:
            return
        if task.requests and task.work_state is WorkState.AWAITING:
            self.tasks.update(None, task.task_id, dict.fromkeys(task.requests, accepted(True)))
        self.timers.call_at(self.timers.now_s() + POLL_S, self.look)

    @property
    def task(self) -> Task:
        item = self.store.get(self.pk, TASK)
        assert item is not None
        read = self._read
        if read is None or read[0] != item:
            self._read = read = item, Task.from_item(item)
        return read[1]

    @property
    def journal(self) -> dict[str, Any]:
        rows = {str(row["sk"]): row for row in self.store.query(self.pk)}
        return {
            key.removeprefix(ENTRY): json.loads(str(row["v"]))
            for key, row in rows.items()
            if key.startswith(ENTRY)
        }

    # -- Lambda and SQS, for the dispatcher ---------------------------------------------------------------

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        if operation == "Invoke":
            invocation = InvokeRequest(FUNCTION.name, parameters["Payload"])
            for _ in range(self.deliveries):
                self.invocations.accept(invocation)
            return {}
        target = ("x-amz-target", f"AmazonSQS.{operation}")
        response = self.queues.respond(Request("POST", "/", (target,), json.dumps(parameters).encode()))
        if response.status != 200:
            raise AwsError(json.loads(response.body)["__type"])
        return {}

    def close(self) -> None: ...

    # -- workers ------------------------------------------------------------------------------------------

    def run_worker(self, invocation: InvokeRequest) -> InvocationResult:
        worker = Worker(self.timers, invocation.request_id, self.note_loss)
        self.working.append(worker)
        tasks = Tasks(
            WorkerPort(self, worker, self.store), WorkerPort(self, worker, self.dispatcher), self.now_ms
        )
        ports = replace(
            make_ports(),
            clock=self.timers.now_s,
            clock_ms=self.now_ms,
            pause_ms=lambda duration_ms: worker.pass_time(duration_ms / 1000),
            wait_ms=worker.wait_ms,
            tasks=lambda: tasks,
        )
        try:
            event = json.loads(invocation.payload)
            result = contextvars.Context().run(work, self.server._server_tools, event, worker, ports)
            return InvocationResult(json.dumps(result).encode())
        except WorkerKilled:
            return InvocationResult(b"{}", failed=True)
        finally:
            self.working.remove(worker)

    def note_loss(self) -> None:
        needs_worker = self.task.work_state in (WorkState.READY, WorkState.LEASED)
        self.lost.append((self.timers.now_s(), needs_worker))

    def take_step(self, step: str) -> str:
        """Have a visible effect, which takes time, and return a value of this run."""
        worker = self.working[-1]
        assert worker.ended_beat.wait(
            20
        )  # otherwise the time could pass before the first heartbeat counts it
        self.repeated += [step] if step in self.journal else []
        self.runs.append(step)
        self.acts.append((worker, step))
        value = f"{step} {len(self.runs)}"
        self.perform(worker, f"begin {step}", lambda: self.on_step(worker, step))
        worker.pass_time(STEPS[step])
        self.perform(worker, f"end {step}", lambda: None)
        return value

    def perform(self, worker: Worker, name: str, call: Callable[[], Any]) -> Any:
        """Make a call of a worker, which may be lost before it or after it."""
        calls = self.calls[in_heartbeat()]
        number = len(calls)
        calls.append(name)
        self.lose(worker, Loss(number, False, in_heartbeat()))
        result = call()
        self.lose(worker, Loss(number, True, in_heartbeat()))
        return result

    def lose(self, worker: Worker, place: Loss) -> None:
        if self.loss == place and self.stopped_s:
            worker.stop(self.stopped_s)
            self.acts.append((worker, "continued"))
        elif self.loss == place:
            worker.kill()
        worker.live()


@dataclass(frozen=True)
class WorkerPort:
    """The table or the dispatcher as a worker sees them."""

    world: World
    worker: Worker
    port: Any

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda *arguments: self.world.perform(
            self.worker, operation, lambda: self.call(operation, arguments)
        )

    def call(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        before = self.world.task
        result = getattr(self.port, operation)(*arguments)
        after = self.world.task
        if is_written(operation, result):
            self.world.acts.append((self.worker, operation))
        if after.lease_owner not in (None, before.lease_owner):
            self.world.claims.append((self.world.timers.now_s(), self.worker))
        if after.is_terminal and not before.is_terminal:
            self.world.ended.append(after.status)
        return result


def is_written(operation: str, result: Any) -> bool:
    match operation:
        case "put_new":
            return result is None
        case "put_new_and_update":
            return not result
        case "update":
            return result is not None
    return False
