"""Concurrent rounds of one flow, over every store."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_roundtrip_testing.task_table import CrashingStore
from support.charging_shop import Client, charged, count_calls_of_creation, server
from support.deployment import Deployment

pytest_plugins = ["support.task_stores", "support.charging_shop"]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("call", range(count_calls_of_creation()))
def test_of_two_requests_in_every_order_one_creates_the_task(task_store, call, is_done):
    """The second request runs as a whole at each call of the first one's store, before it or after it."""
    deployment = Deployment(server, store=task_store)
    client = Client(deployment)
    later, other = client.repeat_first(), []

    def send_later():
        other.append(deployment.retry("optional", later, sure=True))

    task = client.become_task(CrashingStore(task_store, call, is_done, on_reached=send_later))
    assert [second["taskId"] for second in other] == [task["taskId"]]
    deployment.run_workers()
    assert [account for account, _ in charged] == [deployment.text_of(task["taskId"])]


@pytest.mark.parametrize("repetition", range(4))
def test_of_two_rounds_at_once_one_creates_the_task(threaded_store, repetition):
    deployment = Deployment(server, store=threaded_store)
    client = Client(deployment)
    rounds = client.asked[1], client.repeat_first()
    with ThreadPoolExecutor(2) as threads:
        sent = [threads.submit(deployment.retry, "optional", each, sure=True) for each in rounds]
        [task_id] = {each.result()["taskId"] for each in sent}
    deployment.run_workers()
    assert [account for account, _ in charged] == [deployment.text_of(task_id)]
