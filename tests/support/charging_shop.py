"""A shop whose tools charge an account after two questions, and a client that can send its rounds again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore
from mcp_roundtrip_testing.workers import NEVER
from support.deployment import Deployment

server = Server("shop")
charged: list[tuple[str, str]] = []
concurrent: list[Callable[[], object]] = []


@pytest.fixture(autouse=True)
def nothing_charged() -> None:
    charged.clear()
    concurrent.clear()


def charge(account: str, key: str) -> str:
    charged.append((account, key))
    return account


def finish(ctx: Context, account: str) -> str:
    key = ctx.idempotency_key("charge")
    return ctx.step("charge", charge, account, key, at_most_once=True)


def ask_twice(ctx: Context) -> str:
    account = ctx.elicit("account", "Which account?", str)
    ctx.elicit("sure", "Sure?", bool)
    return account


@server.tool(task="optional")
def optional(ctx: Context) -> str:
    account = ask_twice(ctx)
    ctx.run_as_task()
    return finish(ctx, account)


@server.tool(task="optional")
def prepares(ctx: Context) -> str:
    account = ask_twice(ctx)
    ctx.step("prepare", str)
    while concurrent:
        concurrent.pop()()
    ctx.run_as_task()
    return ctx.step("charge", charge, account, ctx.idempotency_key("charge"))


class Client:
    """A client of one deployment that has sent two rounds. `asked` are their results."""

    def __init__(self, deployment: Deployment, tool: str = "optional") -> None:
        self.deployment, self.tool = deployment, tool
        first = deployment.call(tool)
        self.asked = [first, deployment.retry(tool, first, account="acc-1")]

    def become_task(self, store: TaskStore | None = None, *, sure: bool = True) -> Any:
        """Return the result of the round in which the call becomes a task."""
        deployment = self.deployment if store is None else self.deployment.by(store=store)
        return deployment.retry(self.tool, self.asked[1], sure=sure)

    def repeat_first(self) -> Any:
        """Return the result of the round before, with another answer."""
        return self.deployment.retry(self.tool, self.asked[0], account="acc-2")


def count_calls_of_creation() -> int:
    deployment = Deployment(server)
    counting = CrashingStore(deployment.store, NEVER, is_done=False)
    Client(deployment).become_task(counting)
    return counting.calls
