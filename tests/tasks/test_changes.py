"""A change has the same effect in MemoryStore and in the DynamoDB of ministack."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.store import Above, AllOf, AnyOf, Below, Change, Equals
from mcp_roundtrip_testing.task_table import MemoryStore
from support.dynamodb_clients import new_table

pytest_plugins = ["support.ministack"]

NAMES = ("st", "ver", "status", "é", "name", "size")  # some are reserved words
KEYS = itertools.count()

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-9, 9) | st.integers(-(10**27), 10**27)  # ministack adds with 28 digits, AWS with 38
VALUES = TEXTS | NUMBERS | st.binary(max_size=8)


@pytest.fixture(scope="module")
def dynamo(ministack_dynamodb):
    return DynamoStore(ministack_dynamodb, new_table(ministack_dynamodb))


def conditions(item):
    """Generate conditions, many of which hold or nearly hold for the item."""
    names, order = st.sampled_from(NAMES), st.sampled_from([Below, Above])
    simple = [st.builds(Equals, names, VALUES), st.builds(bound, order, names, NUMBERS)]
    for name, value in item.items():
        simple.append(st.just(Equals(name, value)))
        if isinstance(value, int):
            simple.append(st.builds(bound, order, st.just(name), st.integers(value - 1, value + 1)))
    return st.recursive(
        st.one_of(simple),
        lambda inner: st.builds(
            lambda kind, parts: kind(tuple(parts)),
            st.sampled_from([AllOf, AnyOf]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )


def bound(kind, name, value):
    return kind(name, value)


@st.composite
def items_and_changes(draw):
    """Generate an item without keys, and a change that names each attribute at most once."""
    item = draw(st.dictionaries(st.sampled_from(NAMES), VALUES))
    does = {name: draw(st.sampled_from(["set", "add", "remove", "leave"])) for name in NAMES}
    change = Change(
        draw(conditions(item)),
        set={name: draw(VALUES) for name in NAMES if does[name] == "set"},
        add={
            name: draw(NUMBERS)
            for name in NAMES
            if does[name] == "add" and isinstance(item.get(name, 0), int)
        },
        remove=tuple(name for name in NAMES if does[name] == "remove"),
    )
    return item, change


@given(items_and_changes())
@settings(max_examples=150)
def test_a_change_gives_the_same_item_in_memory_and_in_dynamodb(dynamo, item_and_change):
    item, change = item_and_change
    memory = MemoryStore()
    sk = f"J#{next(KEYS)}"
    item = {"pk": "p", "sk": sk} | item
    for store in (memory, dynamo):
        assert store.put_new(item) is None
    changed = memory.update("p", sk, change)
    assert dynamo.update("p", sk, change) == changed
    assert dynamo.get("p", sk) == memory.get("p", sk) == (changed or item)


@given(items_and_changes())
@settings(max_examples=50)
def test_no_change_creates_an_item(dynamo, item_and_change):
    _, change = item_and_change
    sk = f"J#{next(KEYS)}"
    for store in (MemoryStore(), dynamo):
        assert store.update("p", sk, change) is None
        assert store.get("p", sk) is None


@given(items_and_changes())
def test_applying_a_change_does_not_mutate_the_item(item_and_change):
    item, change = item_and_change
    before = dict(item)
    change.apply_to(item)
    assert item == before
