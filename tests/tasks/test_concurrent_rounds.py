"""Concurrent rounds of one flow, over every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore
from support.charging_shop import Client, charged, count_calls_of_creation, server, text_of
from support.dynamodb_clients import new_table
from support.task_deployment import TaskDeployment

pytest_plugins = ["support.task_stores"]


@pytest.fixture(autouse=True)
def reset_charged() -> None:
    charged.clear()


@pytest.fixture(params=["memory", "ministack"])
def threaded_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store for several threads: moto loses updates."""
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue("ministack_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("call", range(count_calls_of_creation()))
def test_of_two_requests_in_every_order_one_creates_the_task(
    task_store: TaskStore, call: int, is_done: bool
) -> None:
    """The second request runs as a whole at each call of the first one's store, before it or after it."""
    deployment = TaskDeployment(server, store=task_store)
    client = Client(deployment)
    later = client.repeat_first()["result"]["requestState"]
    other: list[Any] = []
    store = CrashingStore(
        task_store, call, is_done, on_reached=lambda: other.append(client.send(later, sure=True))
    )
    task = client.become_task(store)
    [second] = other
    assert second["result"]["taskId"] == task["taskId"]
    deployment.run_workers()
    assert [account for account, _ in charged] == [text_of(deployment, task["taskId"])]


@pytest.mark.parametrize("repetition", range(4))
def test_of_two_rounds_at_once_one_creates_the_task(threaded_store: TaskStore, repetition: int) -> None:
    deployment = TaskDeployment(server, store=threaded_store)
    client = Client(deployment)
    later = client.repeat_first()["result"]["requestState"]
    with ThreadPoolExecutor(2) as threads:
        sent = [threads.submit(client.send, state, sure=True) for state in (client.states[1], later)]
        ids = {each.result()["result"]["taskId"] for each in sent}
    [task_id] = ids
    deployment.run_workers()
    assert [account for account, _ in charged] == [text_of(deployment, task_id)]
