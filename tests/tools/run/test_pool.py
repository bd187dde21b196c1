from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.execution.environment import ProcessEnvironment, process_variables
from mcp_roundtrip_tools.run.execution.pools import Pool
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials
from mcp_roundtrip_tools.template.model import Function
from support.sam_applications import write_application

SOURCE = """
    import os, time
    def handler(event, context):
        time.sleep(event)
        return os.getpid()
    """


@pytest.fixture
def launched() -> list[ProcessEnvironment]:
    return []


@pytest.fixture
def started() -> threading.Event:
    return threading.Event()


@pytest.fixture
def pool_of(
    tmp_path: Path, launched: list[ProcessEnvironment], started: threading.Event
) -> Iterator[Callable[[int], Pool]]:
    write_application(tmp_path, "", {"app.py": SOURCE})
    function = Function("F", "app.handler", tmp_path, (), {}, 30, 128)
    pools: list[Pool] = []

    def launch() -> ProcessEnvironment:
        variables = process_variables(function, {}, "3.13", Credentials.random().variables())
        launched.append(ProcessEnvironment(function, variables, python=sys.executable, log=lambda line: None))
        started.set()
        return launched[-1]

    def make(limit: int) -> Pool:
        pools.append(Pool(launch, limit=limit))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_invocations_over_the_limit_wait_for_a_process(
    pool_of: Callable[[int], Pool], launched: list[ProcessEnvironment]
) -> None:
    pool = pool_of(1)
    with ThreadPoolExecutor(4) as workers:
        outcomes = list(workers.map(lambda _: pool.invoke(b"0.02", function_arn="arn"), range(4)))
    assert len({json.loads(outcome.payload) for outcome in outcomes}) == len(launched) == 1


def test_a_retired_pool_completes_running_invocations(
    pool_of: Callable[[int], Pool], launched: list[ProcessEnvironment], started: threading.Event
) -> None:
    pool = pool_of(2)
    with ThreadPoolExecutor() as workers:
        call = workers.submit(pool.invoke, b"0.3", function_arn="arn")
        assert started.wait(10)
        pool.retire()
        assert not call.result(10).failed
    assert not launched[0].alive


def test_a_closed_pool_aborts_running_invocations_and_starts_none(
    pool_of: Callable[[int], Pool], launched: list[ProcessEnvironment], started: threading.Event
) -> None:
    pool = pool_of(1)
    with ThreadPoolExecutor() as workers:
        calls = [workers.submit(pool.invoke, b"20", function_arn="arn") for _ in range(3)]
        assert started.wait(10)
        pool.close()
        assert all(call.result(10).failed for call in calls)
    assert len(launched) == 1
    assert not launched[0].alive
