"""The interface to the table of tasks, and a store in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
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


class MemoryStore:
    """A store in memory, for tests. Thread-safe."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Item] = {}
        self._sort_keys: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def put_new(self, item: Item) -> Item | None:
        check_item_size(item)
        name = _key(item)
        with self._lock:
            present = self._items.get(name)
            if present is None:
                self._write(item)
            return None if present is None else dict(present)

    def get(self, pk: str, sk: str) -> Item | None:
        with self._lock:
            present = self._items.get((pk, sk))
            return None if present is None else dict(present)

    def query(self, pk: str) -> Sequence[Item]:
        with self._lock:
            # DynamoDB orders sort keys by their UTF-8 bytes.
            sort_keys = sorted(self._sort_keys.get(pk, ()), key=str.encode)
            return [dict(self._items[pk, sk]) for sk in sort_keys]

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        with self._lock:
            return self._update(pk, sk, change)

    def put_new_and_update(self, item: Item, *updates: Update) -> bool:
        check_item_size(item)
        with self._lock:
            if _key(item) in self._items:
                raise StoreError("item_exists")
            changed = [self._changed(each.pk, each.sk, each.change) for each in updates]
            written = [each for each in changed if each is not None]
            if len(written) < len(updates):
                return False
            for each in (item, *written):
                self._write(each)
            return True

    def _update(self, pk: str, sk: str, change: Change) -> Item | None:
        changed = self._changed(pk, sk, change)
        if changed is not None:
            self._write(changed)
        return changed

    def _write(self, item: Item) -> None:
        pk, sk = name = _key(item)
        if name not in self._items:
            self._sort_keys.setdefault(pk, []).append(sk)
        self._items[name] = dict(item)

    def _changed(self, pk: str, sk: str, change: Change) -> Item | None:
        changed = change.apply_to(self._items.get((pk, sk), {}))
        if changed is None:
            return None
        changed = {"pk": pk, "sk": sk, **changed}
        check_item_size(changed)
        return changed


def _key(item: Item) -> tuple[str, str]:
    return str(item["pk"]), str(item["sk"])


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
