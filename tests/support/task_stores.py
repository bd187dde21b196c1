"""A fixture with each store of tasks: in memory, and in a table of ministack's DynamoDB.

tests/tasks/test_store_interface.py has their contract.
"""

import pytest

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from support.dynamodb_clients import new_table

pytest_plugins = ["support.ministack"]


@pytest.fixture(params=["memory", "ministack"])
def task_store(request: pytest.FixtureRequest) -> TaskStore:
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue("ministack_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))
