"""The interface to the table of tasks, and the size of its items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mcp_roundtrip.internal_errors import ItemTooLarge
from mcp_roundtrip.tasks.changes import Change, Item

MAX_ITEM = 400_000
"""The limit of an item in bytes. DynamoDB's own is 400 KiB with the names of attributes."""


class Update(Struct, frozen=True):
    """A change of the item with this key."""

    pk: str
    sk: str
    change: Change


class TaskStore(Protocol):
    """A table of items with the keys `pk` and `sk`, their attributes: `aws.dynamodb.DynamoStore`.

    Each operation is atomic and strongly consistent, and raises StoreError if it fails.
    """

    def put_new(self, item: Item) -> Item | None:
        """Write an item if its key is unused; otherwise return the existing item. Raises ItemTooLarge."""
        ...

    def get(self, pk: str, sk: str) -> Item | None:
        """Return the item, or None."""
        ...

    def query(self, pk: str) -> Sequence[Item]:
        """Return all items of a partition in the order of their sort keys."""
        ...

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        """Change an item and return it, or None if the condition does not hold. Raises ItemTooLarge."""
        ...

    def put_new_and_update(self, item: Item, *updates: Update) -> bool:
        """Write `item` and change other items, all or none; return whether all conditions held.

        The key of `item` must be unused, and the updates are of different items. Raises ItemTooLarge.
        """
        ...


def item_size(item: Item) -> int:
    """Return an upper bound of an item's size in bytes (Developer Guide, "Item sizes and formats")."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def check_item_size(item: Item) -> None:
    """Raise ItemTooLarge if an item is over the limit."""
    size = item_size(item)
    if size > MAX_ITEM:
        raise ItemTooLarge(size, MAX_ITEM)


def _size(value: str | int | bytes) -> int:
    if isinstance(value, int):
        return len(str(value)) // 2 + 2
    return len(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
