"""A shop whose tools charge an account after two questions, and a client that can send its rounds again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import CrashingStore
from mcp_roundtrip_testing.workers import NEVER
from support.task_deployment import TaskDeployment, accepted

server = Server("shop")
charged: list[tuple[str, str]] = []


def charge(account: str, key: str) -> str:
    charged.append((account, key))
    return account


def finish(ctx: Context, account: str) -> str:
    key = ctx.idempotency_key("charge")
    return ctx.step("charge", charge, account, key, at_most_once=True)


@server.tool(task="optional")
def optional(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.run_as_task()
    return finish(ctx, account)


@server.tool(task="required")
def required(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.run_as_task()
    return finish(ctx, account)


@server.tool(task="optional")
def short(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.run_as_task(ttl_ms=1_000)
    return finish(ctx, account)


@server.tool(task="optional")
def asks_often(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.elicit("really", "Really?", bool)  # the third round is the last one that a test allows
    return finish(ctx, account)


concurrent: list[Callable[[], object]] = []


@server.tool(task="optional")
def prepares(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.step("prepare", str)
    while concurrent:
        concurrent.pop()()
    ctx.run_as_task()
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


clocks: list[FakeClock] = []


@server.tool(task="optional")
def takes_long(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    ctx.step("wait", lambda: clocks[-1].advance(27))
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


@server.tool
def never_a_task(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    return account


class Client:
    """A client of one deployment that keeps the state of each round."""

    def __init__(self, deployment: TaskDeployment, tool: str = "optional") -> None:
        self.deployment, self.tool = deployment, tool
        first = deployment.call(tool)["result"]
        second = self.send(first["requestState"], account="acc-1")["result"]
        self.states = [first["requestState"], second["requestState"]]

    def send(self, state: str, store: TaskStore | None = None, **answers: Any) -> Any:
        """The response to a round with this state."""
        responses = {key: accepted(value) for key, value in answers.items()}
        return self.deployment.call(self.tool, requestState=state, inputResponses=responses, store=store)

    def become_task(self, store: TaskStore | None = None, *, sure: bool = True) -> Any:
        """The result of the round in which the call becomes a task."""
        return self.send(self.states[1], store, sure=sure)["result"]

    def repeat_first(self, account: str = "acc-2") -> Any:
        """The response to the round before, with another answer."""
        return self.send(self.states[0], account=account)


def stored_tasks(store: TaskStore) -> list[Task]:
    assert isinstance(store, MemoryStore)
    return [Task.from_item(item) for (_, sk), item in store._items.items() if sk == TASK]


def last_outcome(deployment: TaskDeployment) -> Any:
    events = deployment.observer.events
    return [fields["outcome"] for event, fields in events if event == "request_completed"][-1]


def text_of(deployment: TaskDeployment, task_id: str) -> Any:
    return deployment.get(task_id)["result"]["result"]["content"][0]["text"]


def count_calls_of_creation(max_open: int = 0) -> int:
    deployment = TaskDeployment(server)
    deployment.table.max_open = max_open
    counting = CrashingStore(deployment.store, NEVER, is_done=False)
    Client(deployment).become_task(counting)
    return counting.calls
