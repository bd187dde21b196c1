"""A store of tasks that refuses operations, or lets something happen before them, as a test decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore


class Operation(NamedTuple):
    """An operation, with the keys of its items; the sort key of a query is empty.

    `sets` has the attributes that an update sets.
    """

    name: str
    keys: tuple[tuple[str, str], ...]
    sets: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, given: Sequence[Any]) -> Operation:
        match name, given:
            case "put_new" | "put_new_and_update", (item, *updates):
                return cls(name, ((item["pk"], item["sk"]), *((each.pk, each.sk) for each in updates)))
            case "put_all_new", (items,):
                return cls(name, tuple((item["pk"], item["sk"]) for item in items))
            case "update", (pk, sk, change):
                return cls(name, ((pk, sk),), frozenset(change.set))
            case "get" | "query", (pk, *sk):
                return cls(name, ((pk, *sk) if sk else (pk, ""),))
        raise AssertionError(name)

    @property
    def is_read(self) -> bool:
        return self.name in ("get", "query")


def refuse(*operation: Operation) -> None:
    """Refuse an operation as a table does that is overloaded."""
    raise StoreError("ThrottlingException")


@dataclass
class FaultyStore:
    """A store that calls `before` with each of the next `times` operations that match."""

    store: TaskStore = field(default_factory=MemoryStore)
    matches: Callable[[Operation], bool] = lambda operation: True
    before: Callable[[Operation], object] = refuse
    times: float = float("inf")

    def __getattr__(self, name: str) -> Any:
        perform = getattr(self.store, name)

        def call(*given: Any) -> Any:
            operation = Operation.of(name, given)
            if self.times > 0 and self.matches(operation):
                self.times -= 1
                self.before(operation)
            return perform(*given)

        return call
