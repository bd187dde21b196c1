"""Fixtures with each store of tasks: in memory, and in the table of two DynamoDB emulators."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from support.dynamodb_clients import client, new_table

pytest_plugins = ["support.ministack"]


@pytest.fixture(scope="module")
def moto_dynamodb() -> Iterator[Any]:
    """Return a client of moto's DynamoDB, which takes 15 times as long as a table."""
    with mock_aws():
        connected = client()
        yield connected
        connected.close()


@pytest.fixture(params=["memory", "moto", "ministack"])
def task_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store."""
    return _store(request)


@pytest.fixture(params=["memory", "ministack"])
def threaded_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store for several threads: moto loses updates."""
    return _store(request)


def _store(request: pytest.FixtureRequest) -> TaskStore:
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue(f"{request.param}_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))
