"""The interface to the table of tasks: conditional updates as data that every store applies atomically.

The conditions are a subset of DynamoDB's (Developer Guide, "Comparison operator and function reference"). An
item that does not exist meets only `Absent`: an update without a condition would recreate an expired item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from mcp_roundtrip.internal_errors import ItemTooLarge

Value = str | int | bytes
"""The value of an attribute. JSON is stored as text."""

Item = Mapping[str, Value]


class Equals(Struct, frozen=True):
    """The attribute exists and has this value."""

    name: str
    value: Value


class Below(Struct, frozen=True):
    """The attribute exists and is less than this number."""

    name: str
    value: int


class Above(Struct, frozen=True):
    """The attribute exists and is greater than this number."""

    name: str
    value: int


class Absent(Struct, frozen=True):
    """The attribute, or the whole item, does not exist. A change with this condition can create the item."""

    name: str


class AllOf(Struct, frozen=True):
    """All of these conditions hold. There is at least one."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        assert self.conditions, "an empty condition would hold for a missing item"


class AnyOf(Struct, frozen=True):
    conditions: tuple[Condition, ...]


Condition = Equals | Below | Above | Absent | AllOf | AnyOf


def all_of(*conditions: Condition) -> Condition:
    return AllOf(conditions)


def any_of(*conditions: Condition) -> Condition:
    return AnyOf(conditions)


def has_one_of(name: str, *values: Value) -> Condition:
    return AnyOf(tuple(Equals(name, value) for value in values))


class Change(Struct, frozen=True):
    """If `condition` holds, set, increment and remove different attributes. A missing number counts as 0."""

    condition: Condition
    set: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()


MAX_ITEM = 400_000
"""The limit of an item in bytes. DynamoDB's own is 400 KiB with the names of attributes."""


class Update(Struct, frozen=True):
    pk: str
    sk: str
    change: Change


class TaskStore(Protocol):
    """A table of items with the keys `pk` and `sk`, their attributes: `aws.dynamodb.DynamoStore`.

    All but `put_all_new` are atomic. Each is strongly consistent, and raises StoreError if it fails.
    """

    def put_new(self, item: Item) -> Item | None:
        """Write an item if its key is unused; otherwise return the existing item. Raises ItemTooLarge."""

    def put_all_new(self, items: Sequence[Item]) -> None:
        """Do the same for each item, in no order. If that fails, some are written. Raises ItemTooLarge."""

    def get(self, pk: str, sk: str) -> Item | None: ...

    def query(self, pk: str) -> Sequence[Item]:
        """Return all items of a partition in the order of their sort keys."""

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        """Change an item and return it, or None if the condition does not hold. Raises ItemTooLarge."""

    def put_new_and_update(self, item: Item, *updates: Update) -> Sequence[Update]:
        """Write `item` and change other items, all or none; return the updates whose condition did not hold.

        The key of `item` must be unused, and the updates are of different items. Raises ItemTooLarge.
        """


def item_size(item: Item) -> int:
    """Return an upper bound of the size in bytes (Developer Guide, "Item sizes and formats")."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def check_item_size(item: Item) -> None:
    size = item_size(item)
    if size > MAX_ITEM:
        raise ItemTooLarge(size, MAX_ITEM, item.get("wire"))


def _size(value: str | int | bytes) -> int:
    if isinstance(value, int):
        return len(str(value)) // 2 + 2
    return len(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
