"""Conditional updates of one item, as data that every store applies atomically.

The conditions are a subset of DynamoDB's (Developer Guide, "Comparison operator and function reference"). An
item that does not exist meets only `Absent`: an update without a condition would recreate an expired item.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

Value = str | int | bytes
"""The value of an attribute. JSON is stored as text."""

Item = Mapping[str, Value]


class Equals(Struct, frozen=True):
    """The attribute exists and has this value."""

    name: str
    value: Value

    def holds(self, item: Item) -> bool:
        return item.get(self.name) == self.value


class Below(Struct, frozen=True):
    """The attribute exists and is less than this number."""

    name: str
    value: int

    def holds(self, item: Item) -> bool:
        present = item.get(self.name)
        return isinstance(present, int) and present < self.value


class Above(Struct, frozen=True):
    """The attribute exists and is greater than this number."""

    name: str
    value: int

    def holds(self, item: Item) -> bool:
        present = item.get(self.name)
        return isinstance(present, int) and present > self.value


class Absent(Struct, frozen=True):
    """The attribute, or the whole item, does not exist. A change with this condition can create the item."""

    name: str

    def holds(self, item: Item) -> bool:
        return self.name not in item


class AllOf(Struct, frozen=True):
    """All of these conditions hold. There is at least one."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        assert self.conditions, "an empty condition would hold for a missing item"

    def holds(self, item: Item) -> bool:
        return all(condition.holds(item) for condition in self.conditions)


class AnyOf(Struct, frozen=True):
    """At least one of these conditions holds."""

    conditions: tuple[Condition, ...]

    def holds(self, item: Item) -> bool:
        return any(condition.holds(item) for condition in self.conditions)


Condition = Equals | Below | Above | Absent | AllOf | AnyOf


def all_of(*conditions: Condition) -> Condition:
    """Return the condition that all of these hold."""
    return AllOf(conditions)


def any_of(*conditions: Condition) -> Condition:
    """Return the condition that at least one of these holds."""
    return AnyOf(conditions)


def has_one_of(name: str, *values: Value) -> Condition:
    """Return the condition that the attribute has one of these values."""
    return AnyOf(tuple(Equals(name, value) for value in values))


class Change(Struct, frozen=True):
    """If `condition` holds, set, increment and remove attributes.

    The three must name different attributes, and neither `pk` nor `sk`.
    """

    condition: Condition
    set: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def apply_to(self, item: Item) -> dict[str, Value] | None:
        """Return the changed item, or None if the condition does not hold. A missing number counts as 0."""
        if not self.condition.holds(item):
            return None
        changed = {name: value for name, value in item.items() if name not in self.remove} | dict(self.set)
        for name, amount in self.add.items():
            present = changed.get(name, 0)
            assert isinstance(present, int), name
            changed[name] = present + amount
        return changed
