"""A fixture with each store of tasks: in memory, and in the table of two DynamoDB emulators."""

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
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "moto":
        with mock_aws():
            connected = client()
            yield DynamoStore(connected, new_table(connected))
            connected.close()
    else:
        dynamodb = request.getfixturevalue("ministack_dynamodb")
        yield DynamoStore(dynamodb, new_table(dynamodb))
