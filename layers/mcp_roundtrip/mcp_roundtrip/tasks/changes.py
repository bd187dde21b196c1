"""A conditional update of one item, as data: every store performs it atomically, and alike.

The conditions are those DynamoDB has (Developer Guide, "Comparison operator and function reference"), as far
as tasks need them. An item that does not exist meets no condition but `Absent`: an update without a condition
would bring back an item that has expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | int | bytes
"""An attribute: text, an integer or bytes. JSON goes in as text."""

Item = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute is there and has this value."""

    name: str
    value: Value

    def holds(self, item: Item) -> bool:
        return item.get(self.name) == self.value


@dataclass(frozen=True, slots=True)
class Below:
    """The attribute is there and less than this number."""

    name: str
    value: int

    def holds(self, item: Item) -> bool:
        present = item.get(self.name)
        return isinstance(present, int) and present < self.value


@dataclass(frozen=True, slots=True)
class Above:
    """The attribute is there and greater than this number."""

    name: str
    value: int

    def holds(self, item: Item) -> bool:
        present = item.get(self.name)
        return isinstance(present, int) and present > self.value


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute, or the whole item, does not exist. A change with this condition can create the item."""

    name: str

    def holds(self, item: Item) -> bool:
        return self.name not in item


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of these holds; there is at least one."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        assert self.conditions, "what holds for every item holds for a missing one"

    def holds(self, item: Item) -> bool:
        return all(condition.holds(item) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these holds."""

    conditions: tuple[Condition, ...]

    def holds(self, item: Item) -> bool:
        return any(condition.holds(item) for condition in self.conditions)


Condition = Equals | Below | Above | Absent | AllOf | AnyOf


def all_of(*conditions: Condition) -> Condition:
    return AllOf(conditions)


def any_of(*conditions: Condition) -> Condition:
    return AnyOf(conditions)


def has_one_of(name: str, *values: Value) -> Condition:
    """The attribute has one of these values."""
    return AnyOf(tuple(Equals(name, value) for value in values))


@dataclass(frozen=True, slots=True)
class Change:
    """Where `condition` holds: set these attributes, add to those, remove the rest.

    The three name different attributes, and neither `pk` nor `sk`.
    """

    condition: Condition
    set: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def apply_to(self, item: Item) -> dict[str, Value] | None:
        """The item afterwards, None if the condition does not hold. A number that is missing counts as 0."""
        if not self.condition.holds(item):
            return None
        changed = {name: value for name, value in item.items() if name not in self.remove} | dict(self.set)
        for name, amount in self.add.items():
            present = changed.get(name, 0)
            assert isinstance(present, int), name
            changed[name] = present + amount
        return changed
