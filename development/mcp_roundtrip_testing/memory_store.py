"""The table of tasks in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.store import Change, Item, Update, check_item_size


class MemoryStore:
    """A `TaskStore` in memory. Thread-safe."""

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
