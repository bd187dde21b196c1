"""Fixtures with each store of tasks: in memory, and in the table of two DynamoDB emulators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from support.dynamodb_clients import client, new_table

pytest_plugins = ["support.ministack"]


@pytest.fixture(params=["memory", "moto", "ministack"])
def task_store(request: pytest.FixtureRequest) -> Iterator[TaskStore]:
    """An empty store."""
    if request.param == "moto":
        with mock_aws():
            connected = client()
            yield DynamoStore(connected, new_table(connected))
            connected.close()
    else:
        yield _threaded(request)


@pytest.fixture(params=["memory", "ministack"])
def threaded_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store for several threads: moto loses updates."""
    return _threaded(request)


def _threaded(request: pytest.FixtureRequest) -> TaskStore:
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue("ministack_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))
