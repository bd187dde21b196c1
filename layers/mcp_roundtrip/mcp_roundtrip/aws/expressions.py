"""Convert items and changes for DynamoDB (API Reference, AttributeValue; Developer Guide, Expressions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.tasks.changes import (
    Above,
    Absent,
    AllOf,
    AnyOf,
    Below,
    Change,
    Condition,
    Equals,
    Item,
    Value,
)


def to_attributes(item: Item) -> dict[str, Any]:
    """Convert an item to AttributeValues."""
    return {name: _to_attribute(value) for name, value in item.items()}


def from_attributes(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """Convert AttributeValues to an item. Raises ValueError if they are not those of an item."""
    if not isinstance(attributes, Mapping):
        raise ValueError("not an item")
    return {name: _from_attribute(attribute) for name, attribute in attributes.items()}


def build_expressions(change: Change) -> dict[str, Any]:
    """Return the condition and the update of a change as parameters of UpdateItem."""
    return _Expressions().build(change)


class _Expressions:
    """Writes expressions with placeholders, because many names are reserved words."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def build(self, change: Change) -> dict[str, Any]:
        clauses = {
            "SET": [f"{self._name(name)} = {self._value(value)}" for name, value in change.set.items()],
            "ADD": [f"{self._name(name)} {self._value(amount)}" for name, amount in change.add.items()],
            "REMOVE": [self._name(name) for name in change.remove],
        }
        return {
            "ConditionExpression": self._condition(change.condition),
            "UpdateExpression": " ".join(f"{verb} {', '.join(of)}" for verb, of in clauses.items() if of),
            "ExpressionAttributeNames": {placeholder: name for name, placeholder in self._names.items()},
            "ExpressionAttributeValues": self._values,
        }

    def _condition(self, condition: Condition) -> str:
        match condition:
            case Equals(name, value):
                return f"{self._name(name)} = {self._value(value)}"
            case Below(name, value):
                return f"{self._name(name)} < {self._value(value)}"
            case Above(name, value):
                return f"{self._name(name)} > {self._value(value)}"
            case Absent(name):
                return f"attribute_not_exists({self._name(name)})"
            case AllOf(conditions):
                return self._joined(" AND ", conditions)
            case AnyOf(conditions):
                return self._joined(" OR ", conditions)

    def _joined(self, operator: str, conditions: tuple[Condition, ...]) -> str:
        terms = [self._condition(condition) for condition in conditions]
        # DynamoDB refuses redundant parentheses, such as those around a single term.
        return terms[0] if len(terms) == 1 else f"({operator.join(terms)})"

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#{len(self._names)}")

    def _value(self, value: Value) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = _to_attribute(value)
        return placeholder


def _to_attribute(value: Value) -> dict[str, str | bytes]:
    if isinstance(value, int):
        return {"N": str(value)}
    return {"S": value} if isinstance(value, str) else {"B": value}


def _from_attribute(attribute: Mapping[str, Any]) -> Value:
    if not isinstance(attribute, Mapping) or len(attribute) != 1:
        raise ValueError("not an AttributeValue")
    [kind] = attribute
    if type(attribute[kind]) is not _TYPES.get(kind):
        raise ValueError("not an AttributeValue of a text, a number or bytes")
    read: Value = int(attribute[kind]) if kind == "N" else attribute[kind]
    return read


_TYPES: Final[Mapping[str, type]] = {"S": str, "N": str, "B": bytes}
