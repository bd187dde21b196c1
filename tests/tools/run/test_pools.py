"""Pools of processes: their limit, their end, and what replaces them."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.execution.environment import (
    InvocationResult,
    ProcessEnvironment,
    process_variables,
)
from mcp_roundtrip_tools.run.execution.pools import Pool, Pools, affected_functions
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
def launched():
    return []


@pytest.fixture
def started():
    return threading.Event()


@pytest.fixture
def pool_of(tmp_path, launched, started):
    write_application(tmp_path, "", {"app.py": SOURCE})
    function = Function("F", "app.handler", tmp_path, (), {}, 30, 128)
    pools: list[Pool] = []

    def launch() -> ProcessEnvironment:
        variables = process_variables(function, {}, Credentials.random().variables())
        launched.append(ProcessEnvironment(function, variables, python=sys.executable, log=lambda line: None))
        started.set()
        return launched[-1]

    def make(limit: int) -> Pool:
        pools.append(Pool(launch, limit=limit))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_invocations_over_the_limit_wait_for_a_process(pool_of, launched):
    pool = pool_of(1)
    with ThreadPoolExecutor(4) as workers:
        outcomes = list(workers.map(lambda _: pool.invoke(b"0.02", function_arn="arn"), range(4)))
    assert len({json.loads(outcome.payload) for outcome in outcomes}) == len(launched) == 1


def test_a_retired_pool_completes_running_invocations(pool_of, launched, started):
    pool = pool_of(2)
    with ThreadPoolExecutor() as workers:
        call = workers.submit(pool.invoke, b"0.3", function_arn="arn")
        assert started.wait(10)
        pool.retire()
        assert not call.result(10).failed
    assert not launched[0].alive


def test_a_closed_pool_aborts_running_invocations_and_starts_none(pool_of, launched, started):
    pool = pool_of(1)
    with ThreadPoolExecutor() as workers:
        calls = [workers.submit(pool.invoke, b"20", function_arn="arn") for _ in range(3)]
        assert started.wait(10)
        pool.close()
        assert all(call.result(10).failed for call in calls)
    assert len(launched) == 1
    assert not launched[0].alive


LAYER = Path("/layer")
ONE = Function("One", "app.handler", Path("/one"), (LAYER,), {}, 3, 128)
TWO = Function("Two", "app.handler", Path("/two"), (), {}, 3, 128)
BOTH = {"One": ONE, "Two": TWO}


class Launched:
    """A process that counts how often it was stopped."""

    def __init__(self, function):
        self.code = function.code
        self.alive = True

    def invoke(self, payload, *, function_arn, request_id=None, client_context=None):
        return InvocationResult(str(self.code).encode())

    def stop(self):
        self.alive = False


def test_a_changed_file_affects_the_functions_that_use_it():
    for path, names in (
        ("/one/app.py", ["One"]),
        ("/layer/x/y.py", ["One"]),
        ("/oneself/app.py", []),
        ("/two", ["Two"]),
    ):
        assert affected_functions(BOTH, BOTH, [Path(path)]) == names


def test_a_new_or_different_definition_affects_its_function():
    assert affected_functions({"One": ONE}, BOTH, []) == ["Two"]
    assert affected_functions(BOTH, {**BOTH, "Two": replace(TWO, timeout_s=4)}, []) == ["Two"]


def test_a_function_keeps_its_process_until_it_is_retired_or_has_other_code():
    launched: list[Launched] = []

    def launch(function: Function) -> Launched:
        launched.append(Launched(function))
        return launched[-1]

    pools = Pools(launch, fresh=False)
    for code in ("/one", "/one", "/copy"):
        assert pools.pool_for(ONE, Path(code)).invoke(b"", function_arn="").payload == code.encode()
    assert [each.alive for each in launched] == [False, True]
    pools.retire(["One", "Unknown"])
    assert [each.alive for each in launched] == [False, False]
    pools.pool_for(TWO, TWO.code).invoke(b"", function_arn="")
    pools.close()
    assert pools.pool_for(ONE, ONE.code).invoke(b"", function_arn="").failed
    assert [each.alive for each in launched] == [False, False, False]
