"""The contract of a TaskStore: MemoryStore, and DynamoStore on an emulated DynamoDB."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.tasks.store_interface import (
    MAX_ITEM,
    Above,
    Absent,
    AllOf,
    AnyOf,
    Below,
    Change,
    Equals,
    Update,
    all_of,
    any_of,
    has_one_of,
    item_size,
)
from mcp_roundtrip_testing.task_table import MemoryStore
from support.dynamodb_clients import new_table

pytest_plugins = ["support.task_stores"]

ITEM = {"pk": "p", "sk": "M", "st": "working", "ver": 3, "raw": b"\x00\xff"}


@pytest.fixture
def store(task_store):
    return task_store


@pytest.mark.parametrize("again", [ITEM, ITEM | {"st": "failed"}, {"pk": "p", "sk": "M"}])
def test_an_item_is_created_once_and_then_returned_unchanged(store, again):
    assert store.put_new(ITEM) is None
    assert store.get("p", "M") == ITEM
    assert store.put_new(again) == ITEM
    assert store.get("p", "M") == ITEM


@pytest.mark.parametrize("count", [0, 9, 230])
@pytest.mark.parametrize("size", [1, 5_000])
def test_of_many_new_items_those_that_exist_stay_and_all_others_are_written(store, count, size):
    """As after a crash between two writes."""
    items = [{"pk": "p", "sk": f"J#{number:03}", "v": "x" * size} for number in range(count)]
    present = [item | {"v": "first"} for item in items[1::100]]
    for item in present:
        store.put_new(item)
    for _ in range(2):
        store.put_all_new(items)
        assert list(store.query("p")) == [
            item | {"v": "first"} if number % 100 == 1 else item for number, item in enumerate(items)
        ]


def test_partition_key_and_sort_key_identify_an_item_and_a_missing_one_is_none(store):
    for pk, sk in [("p", "M"), ("p", "A"), ("q", "M")]:
        assert store.put_new({"pk": pk, "sk": sk, "v": f"{pk}{sk}"}) is None
    assert store.get("q", "M") == {"pk": "q", "sk": "M", "v": "qM"}
    assert store.get("q", "A") is None
    assert list(store.query("r")) == []


def test_a_partition_is_ordered_by_the_bytes_of_its_sort_keys(store):
    # The last two are in the opposite order in UTF-16.
    ordered = ["A", "I#a", "J#", "J#a", "J#aa", "J#a~2", "J#é", "J#\uffee", "J#\U0001f600"]
    for sk in reversed(ordered):
        store.put_new({"pk": "p", "sk": sk})
    store.put_new({"pk": "q", "sk": "J#another"})
    assert [item["sk"] for item in store.query("p")] == ordered


def test_a_partition_of_several_megabytes_is_read_completely(store):
    items = [{"pk": "p", "sk": f"R#{n}", "v": f"{n}" * 350_000} for n in range(8)]
    for item in items:
        store.put_new(item)
    assert list(store.query("p")) == items


VALUES = {
    "empty text": "",
    "text that JSON escapes": '"\\\n\x00\x7f\u2028',
    "text outside the Basic Multilingual Plane": "naïve \U0001f600 e\u0301",
    "bytes that are not UTF-8": bytes(range(256)),
    "zero": 0,
    "a negative number": -1_795_000_000_000,
    "38 digits": 10**38 - 1,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_round_trips(store, value):
    item = {"pk": "p", "sk": "A", "v": value}
    store.put_new(item)
    assert store.get("p", "A") == item
    assert list(store.query("p")) == [item]
    assert store.put_new(item) == item
    assert store.update("p", "A", Change(Equals("v", value), set={"w": value})) == item | {"w": value}


CONDITION_RESULTS = {
    "equal text": (Equals("st", "working"), True),
    "equal number": (Equals("ver", 3), True),
    "other number": (Equals("ver", 4), False),
    "equal bytes": (Equals("raw", b"\x00\xff"), True),
    "text with the digits of the number": (Equals("ver", "3"), False),
    "text against a missing attribute": (Equals("none", ""), False),
    "below": (Below("ver", 4), True),
    "less than an equal number": (Below("ver", 3), False),
    "less than with a missing attribute": (Below("none", 1), False),
    "above": (Above("ver", 2), True),
    "greater than an equal number": (Above("ver", 3), False),
    "greater than with a missing attribute": (Above("none", -1), False),
    "one of": (has_one_of("st", "failed", "working"), True),
    "not one of": (has_one_of("st", "failed", "cancelled"), False),
    "all": (all_of(Equals("st", "working"), Below("ver", 4)), True),
    "any": (any_of(Equals("st", "failed"), Above("ver", 2)), True),
    "present is not absent": (Absent("st"), False),
}


@pytest.mark.parametrize(("condition", "holds"), CONDITION_RESULTS.values(), ids=CONDITION_RESULTS)
def test_a_change_is_made_if_its_condition_holds(store, condition, holds):
    store.put_new(ITEM)
    changed = ITEM | {"new": "x"} if holds else ITEM
    assert store.update("p", "M", Change(condition, set={"new": "x"})) == (changed if holds else None)
    assert store.get("p", "M") == changed


CHANGES = {
    "sets": (Change(Equals("ver", 3), set={"st": "failed", "new": 1}), {"st": "failed", "new": 1}),
    "adds": (Change(Equals("ver", 3), add={"ver": 1}), {"ver": 4}),
    "subtracts": (Change(Equals("ver", 3), add={"ver": -5}), {"ver": -2}),
    "adds to a missing attribute": (Change(Equals("ver", 3), add={"att": 2}), {"att": 2}),
    "removes": (Change(Equals("ver", 3), remove=("st", "none")), {"st": None}),
    "sets, adds and removes": (
        Change(Equals("ver", 3), set={"raw": b"", "att": 0}, add={"ver": 1}, remove=("st",)),
        {"raw": b"", "att": 0, "ver": 4, "st": None},
    ),
    "sets another type": (Change(Equals("ver", 3), set={"ver": "three"}), {"ver": "three"}),
    "has names that DynamoDB reserves": (
        Change(Equals("ver", 3), set={"status": "x", "ttl": 1, "name with blank": "", "é#:": ""}),
        {"status": "x", "ttl": 1, "name with blank": "", "é#:": ""},
    ),
    "changes nothing": (Change(Equals("ver", 3)), {}),
}


@pytest.mark.parametrize(("change", "differences"), CHANGES.values(), ids=CHANGES)
def test_a_change_returns_the_changed_item_and_creates_none(store, change, differences):
    assert store.update("p", "M", change) is None
    assert store.put_new(ITEM) is None
    expected = {name: value for name, value in (ITEM | differences).items() if value is not None}
    assert store.update("p", "M", change) == expected
    assert store.get("p", "M") == expected


@pytest.mark.parametrize("condition", [Absent("n"), any_of(Absent("n"), Below("n", 2))])
def test_a_change_that_requires_absence_creates_the_item(store, condition):
    change = Change(condition, set={"v": "x"}, add={"n": 1})
    assert store.update("p", "M", change) == {"pk": "p", "sk": "M", "v": "x", "n": 1}
    store.put_new({"pk": "q", "sk": "M", "v": "y"})
    assert store.update("q", "M", change) == {"pk": "q", "sk": "M", "v": "x", "n": 1}


COUNT = Change(any_of(Absent("n"), Below("n", 2)), set={"last": "x"}, add={"n": 1})


def test_a_transaction_creates_an_item_and_changes_several_others(store):
    found = Change(Absent("call"), set={"call": "p"})
    assert not store.put_new_and_update(ITEM, Update("q", "O", COUNT), Update("r", "C", found))
    assert store.get("p", "M") == ITEM
    assert store.get("q", "O") == {"pk": "q", "sk": "O", "last": "x", "n": 1}
    assert store.get("r", "C") == {"pk": "r", "sk": "C", "call": "p"}
    assert store.put_new(ITEM | {"ver": 4}) == ITEM


@pytest.mark.parametrize("failing", ["q", "r", "qr"])
def test_a_transaction_writes_nothing_if_one_of_several_conditions_fails(store, failing):
    for pk in failing:
        store.put_new({"pk": pk, "sk": "O", "n": 2})
    updates = [Update(pk, "O", COUNT) for pk in "qr"]
    assert [each.pk for each in store.put_new_and_update(ITEM, *updates)] == list(failing)
    assert store.get("p", "M") is None
    for pk in "qr":
        assert store.get(pk, "O") == ({"pk": pk, "sk": "O", "n": 2} if pk in failing else None)


def test_a_transaction_writes_nothing_if_the_new_item_exists_or_is_too_large(store):
    store.put_new(ITEM)
    for item, refusal in ((ITEM | {"ver": 4}, StoreError), (item_of(MAX_ITEM + 1), ItemTooLarge)):
        with pytest.raises(refusal):
            store.put_new_and_update(item, Update("q", "O", COUNT))
        assert (store.get("p", "M"), store.get("q", "O")) == (ITEM, None)


def test_concurrent_transactions_succeed_exactly_as_often_as_their_condition_allows(store):
    def write(number):
        return not store.put_new_and_update({"pk": "p", "sk": f"{number}"}, Update("q", "O", COUNT))

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(write, range(8))) == 2
    assert len(store.query("p")) == store.get("q", "O")["n"] == 2


def item_of(size, letter="é"):
    item = {"pk": "p", "sk": "A", "n": 5, "v": ""}
    count, rest = divmod(size - item_size(item), len(letter.encode()))
    return item | {"v": count * letter + rest * "x"}


@pytest.mark.parametrize("below", [0, 1])
def test_an_item_may_be_as_large_as_the_limit(store, below):
    item = item_of(MAX_ITEM - below)
    assert item_size(item) == MAX_ITEM - below
    assert store.put_new(item) is None
    assert store.get("p", "A") == item


def test_an_item_over_the_limit_is_refused(store):
    with pytest.raises(ItemTooLarge) as refused:
        store.put_new(item_of(MAX_ITEM + 1))
    assert (refused.value.size, refused.value.limit) == (MAX_ITEM + 1, MAX_ITEM)
    with pytest.raises(ItemTooLarge):
        store.put_all_new([*({"pk": "p", "sk": f"J#{n}"} for n in range(20)), item_of(MAX_ITEM + 1)])
    assert store.get("p", "A") is None


@pytest.mark.parametrize(("letter", "size"), [("x", 10_000), ("x", MAX_ITEM + 1), ("é", 10_000)])
def test_an_update_that_makes_an_item_too_large_in_bytes_is_refused(store, letter, size):
    item = item_of(MAX_ITEM, letter)
    store.put_new(item)
    with pytest.raises(ItemTooLarge) as refused:
        store.update("p", "A", Change(Equals("n", 5), set={"w": "x" * size}))
    assert refused.value.size > refused.value.limit == MAX_ITEM
    assert store.get("p", "A") == item


NAMES = ("st", "ver", "status", "é", "name", "size")  # some are reserved words
KEYS = itertools.count()

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-9, 9) | st.integers(-(10**27), 10**27)  # ministack adds with 28 digits, AWS with 38
ATTRIBUTES = TEXTS | NUMBERS | st.binary(max_size=8)


@pytest.fixture(scope="module")
def dynamo(ministack_dynamodb):
    return DynamoStore(ministack_dynamodb, new_table(ministack_dynamodb))


def compared(names, numbers):
    return st.builds(Below, names, numbers) | st.builds(Above, names, numbers)


def conditions(item):
    """Generate conditions, many of which hold or nearly hold for the item."""
    names = st.sampled_from(NAMES)
    simple = [st.builds(Equals, names, ATTRIBUTES), compared(names, NUMBERS)]
    for name, value in item.items():
        simple.append(st.just(Equals(name, value)))
        if isinstance(value, int):
            simple.append(compared(st.just(name), st.integers(value - 1, value + 1)))
    return st.recursive(
        st.one_of(simple),
        lambda inner: st.builds(
            lambda kind, parts: kind(tuple(parts)),
            st.sampled_from([AllOf, AnyOf]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )


@st.composite
def items_and_changes(draw):
    """Generate an item without keys, and a change that names each attribute at most once."""
    item = draw(st.dictionaries(st.sampled_from(NAMES), ATTRIBUTES))
    does = {name: draw(st.sampled_from(["set", "add", "remove", "leave"])) for name in NAMES}
    change = Change(
        draw(conditions(item)),
        set={name: draw(ATTRIBUTES) for name in NAMES if does[name] == "set"},
        add={
            name: draw(NUMBERS)
            for name in NAMES
            if does[name] == "add" and isinstance(item.get(name, 0), int)
        },
        remove=tuple(name for name in NAMES if does[name] == "remove"),
    )
    return item, change


@given(items_and_changes())
@example(({"a": 1}, Change(all_of(Equals("a", 2), any_of(Absent("b"), Equals("a", 1))), set={"c": 1})))
@settings(max_examples=60)
def test_a_change_gives_the_same_item_in_memory_and_in_dynamodb(dynamo, item_and_change):
    item, change = item_and_change
    memory = MemoryStore()
    sk = f"J#{next(KEYS)}"
    item = {"pk": "p", "sk": sk} | item
    before = dict(item)
    for store in (memory, dynamo):
        assert store.put_new(item) is None
    changed = memory.update("p", sk, change)
    assert dynamo.update("p", sk, change) == changed
    assert dynamo.get("p", sk) == memory.get("p", sk) == (changed or item)
    assert item == before
