"""Provide a server with tools that become tasks, for the scripts that measure tasks."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from mcp_roundtrip import Context, Elicit, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.tasks.lost_workers import Dispatcher
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import TaskStore

ANSWER = {"action": "accept", "content": {"value": True}}


def total(a: int, b: int) -> int:
    return a + b


def number(item: int) -> int:
    return item


def add(ctx: Context, a: int, b: int) -> int:
    """Add two numbers in a step."""
    ctx.run_as_task()
    return ctx.step("total", total, a, b)


def steps(ctx: Context, count: int) -> int:
    """Run steps that return a number, then ask a question."""
    ctx.run_as_task()
    for item in range(count):
        ctx.step(f"step-{item}", number, item)
    ctx.elicit("go", "Go on?", bool)
    return count


def texts(ctx: Context, count: int, size: int) -> int:
    """Run steps that return `size` bytes."""
    ctx.run_as_task()
    for item in range(count):
        ctx.step(f"step-{item}", str, "x" * size)
    return count


def questions(ctx: Context, count: int) -> int:
    """Ask `count` questions in one round."""
    ctx.run_as_task()
    ctx.ask(*(Elicit(f"question-{item}", "Go on?", bool) for item in range(count)))
    return count


WORKER_ARN = "arn:aws:lambda:eu-central-1:123456789012:function:worker:1"


class NullDispatcher:
    """Do not dispatch workers: the scripts call the worker themselves. No task sleeps."""

    def dispatch(self, worker: str, pk: str) -> None: ...

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None: ...

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Deployment:
    """A server, its ports and its task service."""

    server: Server
    ports: Ports
    tasks: Tasks


def deploy(store: TaskStore, dispatcher: Dispatcher | None = None, *, max_open: int = 0) -> Deployment:
    """Create a server that uses this store, with a limit of open tasks (0: no limit).

    Everything else is wired as in a function.
    """
    used_dispatcher = dispatcher or NullDispatcher()
    tasks = Tasks(store, used_dispatcher, clock_ms=lambda: int(time.time() * 1000), max_open=max_open)
    settings = load_settings({**os.environ, "MCP_TASK_WORKER": WORKER_ARN})
    ports = replace(wiring.make_ports(settings), tasks=lambda: tasks)
    server = Server("bench", ports=lambda: ports)
    tools: tuple[Callable[..., int], ...] = (add, steps, texts, questions)
    for tool in tools:
        server.tool(task="required")(tool)
    return Deployment(server, ports, tasks)


def task_table() -> DynamoStore:
    return DynamoStore(AwsClients().client("dynamodb"), os.environ["MCP_TASK_TABLE"])
