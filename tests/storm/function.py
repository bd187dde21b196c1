"""The worker function of the storm: a tool, and ports whose time and table are those of the coordinator.

It runs in a process of its own, under AWS's runtime client. Each of its threads has a connection to the
coordinator (`processes`), which answers its calls, one at a time.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Client, Connection
from secrets import token_hex
from types import FrameType
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.tasks.lease import Lease
from mcp_roundtrip.tasks.related_items import TaskCall
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing import make_ports
from mcp_roundtrip_testing.task_table import MemoryStore
from support.three_steps import take_three_steps

STEPS = {"first": 50.0, "once": 5.0, "last": 50.0}
"""The steps of the tool, with the seconds that each takes. Leases are renewed during the long ones."""

OUT_OF_MEMORY = "out of memory"
"""The coordinator's answer to a call during which the process exhausts its memory."""

server = Server("storm")


@server.tool(task="required")
def provision(ctx: Context) -> dict[str, str]:
    """Take three steps, with a question before the last one."""
    return take_three_steps(ctx, effect)


def effect(name: str) -> str:
    """Have a visible side effect, which takes some time, and return a value unique to this run."""
    value = token_hex(8)
    link.wait(link.call("begin_step", name, value))
    link.call("end_step", name, value)
    return value


class Link:
    """The connections of this process to the coordinator."""

    def __init__(self, address: str, time_file: str) -> None:
        self._address = address
        self._time = open(time_file, "rb", buffering=0)  # noqa: SIM115 - open until the process exits
        self._threads = threading.local()
        self._waiting: set[threading.Thread] = set()

    def now_s(self) -> float:
        (now_s,) = struct.unpack("d", os.pread(self._time.fileno(), 8, 0))
        return float(now_s)

    def call(self, *request: Any) -> Any:
        """Make a call and return its result, or raise its error."""
        connection = self._connection()
        connection.send(request)
        result = connection.recv()
        if result == OUT_OF_MEMORY:
            exhaust_memory()
        if isinstance(result, Exception):
            raise result
        return result

    def wait(self, duration_s: float) -> None:
        """Wait in the main thread for virtual time to pass."""
        for thread in threading.enumerate():
            while thread.name == "lease" and thread.is_alive() and thread not in self._waiting:
                time.sleep(0.0005)  # otherwise the time could pass before the heartbeat counts it
        self.call("wait", duration_s)

    def wait_for(self, event: threading.Event, duration_ms: float) -> bool:
        """Wait for an event or for virtual time to pass; return whether the event is set."""
        connection = self._connection()
        connection.send(("wait", duration_ms / 1000))
        connection.recv()  # from now on, the time does not pass before this thread continues
        self._waiting.add(threading.current_thread())
        while not event.wait(0.001):
            if connection.poll():
                connection.recv()
                return event.is_set()
        connection.send(("stop_waiting",))
        while connection.recv() != "stopped":
            pass
        return True

    def _connection(self) -> Connection:
        if not hasattr(self._threads, "connection"):
            self._threads.connection = Client(self._address)
            is_main = threading.current_thread() is threading.main_thread()
            self._threads.connection.send((os.getpid(), is_main))
        connection: Connection = self._threads.connection
        return connection


class LocalLink:
    """A coordinator in this process, for `warm_up`."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def now_s(self) -> float:
        return 1.0

    def call(self, name: str, *arguments: Any) -> Any:
        match name:
            case "store":
                return getattr(self.store, arguments[1])(*arguments[2:])
            case "limits":
                return 1_000_000, 60_000

    def wait(self, duration_s: float | None) -> None:
        """Return at once."""

    def wait_for(self, event: threading.Event, duration_ms: float) -> bool:
        return event.wait()


def warm_up() -> None:
    """Run a pass in this process, so that those forked from it need not build what the first pass builds."""
    global link
    link = LocalLink()
    tasks = ports(60_000).tasks()
    call = TaskCall("tools/call", "provision", {}, None, None)
    task = tasks.create(
        call, None, Journal("warm"), worker="w", capabilities={"elicitation": {}}, ttl_ms=60_000
    )
    handler({"task": task.pk}, VirtualContext("warm", 0))


def exhaust_memory() -> None:
    """Allocate memory up to a limit, then end as a process does that the kernel kills for it."""
    in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115
    limit = in_use + 64 * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    blocks = []
    try:
        while True:
            blocks.append(bytearray(8 * 1024 * 1024))
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)


LEASE_LOCKED = {Lease.renew.__code__, Lease.write_as_owner.__code__}
"""The methods that call the store under the lock of the lease, which the heartbeat needs, too."""


def holds_lease_lock() -> bool:
    """Return whether the calling code runs under the lock of the lease."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code not in LEASE_LOCKED:
        frame = frame.f_back
    return frame is not None


class RemoteStore:
    """The coordinator's table."""

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda *arguments: link.call("store", holds_lease_lock(), operation, *arguments)


class RemoteDispatcher:
    """Dispatches workers through the coordinator."""

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return partial(link.call, operation)


@dataclass(frozen=True)
class VirtualContext:
    """A Lambda context whose deadline is in virtual time."""

    aws_request_id: str
    deadline_ms: int

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self.deadline_ms - round(link.now_s() * 1000))


def ports(lease_ms: int) -> Ports:
    now_ms: Callable[[], int] = lambda: round(link.now_s() * 1000)  # noqa: E731 - as short as its use
    tasks = Tasks(RemoteStore(), RemoteDispatcher(), now_ms)
    in_memory = make_ports()
    return replace(
        in_memory,
        settings=replace(in_memory.settings, task_lease_s=lease_ms // 1000),
        clock=link.now_s,
        clock_ms=now_ms,
        pause_ms=lambda duration_ms: link.wait(duration_ms / 1000),
        wait_ms=link.wait_for,
        tasks=lambda: tasks,
    )


def handler(event: Any, context: Any) -> Any:
    deadline_ms, lease_ms = link.call("limits")
    virtual = VirtualContext(context.aws_request_id, deadline_ms)
    return work(server._server_tools, event, virtual, ports(lease_ms))


link: Link | LocalLink


def run(address: str, time_file: str, runtime_api: str) -> None:
    """Serve invocations until the process is killed."""
    global link
    link = Link(address, time_file)
    link.call("hello")
    os.environ["AWS_LAMBDA_RUNTIME_API"] = runtime_api
    from awslambdaric import bootstrap  # type: ignore[import-untyped]  # reads the variable
    from awslambdaric.lambda_runtime_client import LambdaRuntimeClient  # type: ignore[import-untyped]

    bootstrap.run("storm.function.handler", LambdaRuntimeClient(runtime_api, False))
