"""The stand-in for DynamoDB, through the store that tasks lie in: it takes the contract of `tests/tasks`."""

import secrets

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.changes import Above, Absent, AllOf, AnyOf, Below, Change, Equals
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_local.services.dynamodb import FakeDynamoDb, serve
from support.dynamodb_clients import client


@pytest.fixture(scope="module")
def dynamodb():
    with serve(FakeDynamoDb()) as url:
        connected = client(url)
        yield connected
        connected.close()


NUMBERS = st.integers(-(10**12), 10**12)
VALUES = NUMBERS | st.text("ab ()<>=:#", max_size=5) | st.binary(max_size=5)
NAMES = st.sampled_from(["a", "b", "status", "size"])
COMPARISONS = (
    st.builds(Equals, NAMES, VALUES)
    | st.builds(Below, NAMES, NUMBERS)
    | st.builds(Above, NAMES, NUMBERS)
    | st.builds(Absent, NAMES)
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        .map(tuple)
        .flatmap(lambda conditions: st.sampled_from([AllOf(conditions), AnyOf(conditions)]))
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.dictionaries(NAMES, VALUES), CONDITIONS, st.dictionaries(NAMES, VALUES), st.sets(NAMES))
def test_a_change_does_what_it_does_in_memory(dynamodb, item, condition, given_values, removed):
    change = Change(condition, set=given_values, remove=tuple(removed - given_values.keys()))
    pk = secrets.token_hex(8)
    stored = {**item, "pk": pk, "sk": "M"}
    outcomes = []
    for store in (MemoryStore(), DynamoStore(dynamodb, "t")):
        store.put_new(stored)
        outcomes.append((store.update(pk, "M", change), store.get(pk, "M")))
    assert outcomes[0] == outcomes[1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.dictionaries(NAMES, VALUES), CONDITIONS, st.booleans())
def test_two_writes_do_what_they_do_in_memory(dynamodb, item, condition, is_there):
    change, pk = Change(condition, set={"new": 1}, add={"n": 1}), secrets.token_hex(8)
    outcomes = []
    for store in (MemoryStore(), DynamoStore(dynamodb, "t")):
        if is_there:
            store.put_new({**item, "pk": pk, "sk": "O"})
        is_done = store.put_new_and_update({"pk": pk, "sk": "M"}, pk, "O", change)
        outcomes.append((is_done, store.get(pk, "M"), store.get(pk, "O")))
    assert outcomes[0] == outcomes[1]


def test_two_writes_are_billed_twice():
    fake = FakeDynamoDb()
    with serve(fake) as url:
        store = DynamoStore(client(url), "t")
        store.put_new_and_update({"pk": "p", "sk": "M"}, "p", "O", Change(Absent("n"), add={"n": 1}))
    assert fake.units == {"write": 4}


def test_a_partition_of_many_pages_is_read_whole(dynamodb):
    store = DynamoStore(dynamodb, "pages")
    for number in range(12):
        store.put_new({"pk": "p", "sk": f"J#{number:02}", "v": b"x" * 200_000})
    assert [item["sk"] for item in store.query("p")] == [f"J#{number:02}" for number in range(12)]


def test_tables_are_apart(dynamodb):
    DynamoStore(dynamodb, "one").put_new({"pk": "p", "sk": "M"})
    assert DynamoStore(dynamodb, "other").get("p", "M") is None


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("scan", {"TableName": "t"}),
        ("put_item", {"TableName": "t", "Item": {"pk": {"S": "p"}, "sk": {"S": "s"}}}),
        (
            "query",
            {
                "TableName": "t",
                "KeyConditionExpression": "pk = :pk AND sk = :sk",
                "ExpressionAttributeValues": {":pk": {"S": "p"}, ":sk": {"S": "s"}},
            },
        ),
    ],
)
def test_what_it_does_not_do_it_refuses(dynamodb, operation, members):
    with pytest.raises(ClientError):
        getattr(dynamodb, operation)(**members)
