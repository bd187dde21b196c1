"""Tools whose calls become tasks, and what their server is given: for the scripts that measure tasks."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mcp_roundtrip import Context, Elicit, Server, wiring
from mcp_roundtrip.aws.clients import dynamodb_client
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip.ports import Ports, TaskPort
from mcp_roundtrip.tasks.service import Dispatcher, Tasks
from mcp_roundtrip.tasks.store import TaskStore

ANSWER = {"action": "accept", "content": {"value": True}}


def total(a: int, b: int) -> int:
    return a + b


def number(item: int) -> int:
    return item


def add(ctx: Context, a: int, b: int) -> int:
    """One step."""
    ctx.run_as_task()
    return ctx.step("total", total, a, b)


def steps(ctx: Context, count: int) -> int:
    """Steps that return a number, then a question."""
    ctx.run_as_task()
    for item in range(count):
        ctx.step(f"step-{item}", number, item)
    ctx.elicit("go", "Go on?", bool)
    return count


def texts(ctx: Context, count: int, size: int) -> int:
    """Steps that return `size` bytes."""
    ctx.run_as_task()
    for item in range(count):
        ctx.step(f"step-{item}", str, "x" * size)
    return count


def questions(ctx: Context, count: int) -> int:
    """So many questions in one round."""
    ctx.run_as_task()
    ctx.ask(*(Elicit(f"question-{item}", "Go on?", bool) for item in range(count)))
    return count


class Nobody:
    """A dispatcher that sends for nobody: the script calls the worker."""

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The server on a store: its requests and its workers."""

    server: Server
    ports: Ports
    tasks: Tasks


def deployed(store: TaskStore, dispatcher: Dispatcher | None = None, *, max_open: int = 0) -> Deployment:
    """All else is wired as in a function. `max_open` is the limit of open tasks; 0 is no limit."""
    sent_for = dispatcher or Nobody()
    tasks = Tasks(store, sent_for, clock_ms=lambda: int(time.time() * 1000), max_open=max_open)
    port = TaskPort(tasks, store, sent_for, lambda: "worker")
    ports = replace(wiring.make_ports(load_settings(os.environ)), tasks=lambda: port)
    server = Server("bench", ports=lambda: ports)
    tools: tuple[Callable[..., int], ...] = (add, steps, texts, questions)
    for tool in tools:
        server.tool(task="required")(tool)
    return Deployment(server, ports, tasks)


def table() -> DynamoStore:
    """The table that the environment names."""
    return DynamoStore(dynamodb_client(), os.environ["MCP_TASK_TABLE"])
