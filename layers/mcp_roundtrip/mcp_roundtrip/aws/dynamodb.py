"""A store of tasks in a DynamoDB table with the text keys `pk` and `sk`.

If the response to a write is lost, the client repeats the write, whose condition then fails. So each write
stores a random id in the item: if the condition fails and the item has this id, the write was done. Equal
content would not prove that, because two workers may write the same. A transaction is idempotent by its
ClientRequestToken.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.aws.client_interface import MAX_CODE, AwsClient, AwsError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.tasks.store_interface import (
    MAX_ITEM,
    Above,
    Absent,
    AllOf,
    AnyOf,
    Below,
    Change,
    Condition,
    Equals,
    Item,
    Update,
    Value,
    check_item_size,
    item_size,
)

T = TypeVar("T")

WRITE_ID: Final = "mark"
"""The attribute with the id of the last write, which the store does not return."""

DYNAMODB_ITEM_LIMIT: Final = 409_600
"""DynamoDB's limit of an item in bytes. An update can exceed it although `check_item_size` passed."""

_FAILED: Final = "ConditionalCheckFailedException"

_RETURN_PRESENT: Final[Mapping[str, Any]] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}

_CONFLICTS: Final = frozenset({"TransactionConflict", "TransactionConflictException"})

MAX_PAGES: Final = 500
"""The most pages of a query. A page has up to 1 MB."""

MIN_ACTIONS: Final = 10
MAX_ACTIONS: Final = 100
"""How many new items are written in one transaction. The second value is DynamoDB's limit."""

CONFLICT_ATTEMPTS: Final = 8
"""The attempts for a write that conflicts with a transaction. Clients do not retry such a write."""

FIRST_CONFLICT_PAUSE_S: Final = 0.02
"""The longest pause before the second attempt. It doubles for each further attempt."""


class DynamoStore(Struct, eq=False):
    """A `TaskStore`. Needs dynamodb:GetItem, PutItem, Query and UpdateItem on the table.

    The reason of a StoreError is the AWS error code, `timeout`, or the name of the exception.
    """

    client: AwsClient
    table_name: str
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    pause_s: Callable[[float], None] = time.sleep

    def put_new(self, item: Item) -> Item | None:
        check_item_size(item)
        write_id = self.random_bytes(16)
        parameters = {**self._put_new({**item, WRITE_ID: write_id}), **_RETURN_PRESENT}
        try:
            self._repeat_on_conflict(lambda: self.client.call("PutItem", **parameters))
        except _ConditionFailed as failed:
            if failed.present is None:  # None would mean that this item was written
                raise
            return None if failed.present.get(WRITE_ID) == write_id else _without_write_id(failed.present)
        return None

    def put_all_new(self, items: Sequence[Item]) -> None:
        """Write items, many small ones in transactions: one request for `MAX_ACTIONS`, at twice the price."""
        for start in range(0, len(items), MAX_ACTIONS):
            some = items[start : start + MAX_ACTIONS]
            if len(some) >= MIN_ACTIONS and sum(map(item_size, some)) <= MAX_ITEM:
                with suppress(StoreError):  # a key is used, or the transaction was throttled
                    self._transact(*({"Put": self._put_new(item)} for item in some))
                    continue
            for item in some:
                self.put_new(item)

    def get(self, pk: str, sk: str) -> Item | None:
        key = to_attributes({"pk": pk, "sk": sk})
        with _as_store_errors():
            answer = self.client.call("GetItem", TableName=self.table_name, Key=key, ConsistentRead=True)
            return _without_write_id(from_attributes(answer["Item"])) if "Item" in answer else None

    def query(self, pk: str) -> Sequence[Item]:
        request: dict[str, Any] = {
            "TableName": self.table_name,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": to_attributes({":pk": pk}),
            "ScanIndexForward": True,
        }
        items: list[Item] = []
        for _ in range(MAX_PAGES):
            with _as_store_errors():
                page = self.client.call("Query", **request)
                items += [_without_write_id(from_attributes(found)) for found in page["Items"]]
            if not page.get("LastEvaluatedKey"):
                return items
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        raise StoreError("too_many_pages")

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        check_item_size({"pk": pk, "sk": sk, **change.set})
        write_id = self.random_bytes(16)
        marked = replace(change, set={**change.set, WRITE_ID: write_id})
        parameters = {**self._update(Update(pk, sk, marked)), "ReturnValues": "ALL_NEW", **_RETURN_PRESENT}
        try:
            updated = self._repeat_on_conflict(
                lambda: from_attributes(self.client.call("UpdateItem", **parameters)["Attributes"])
            )
        except _ConditionFailed as failed:
            present = failed.present or {}
            return _without_write_id(present) if present.get(WRITE_ID) == write_id else None
        return _without_write_id(updated)

    def put_new_and_update(self, item: Item, *updates: Update) -> Sequence[Update]:
        """Write all items in one transaction. Needs only the permissions of the single writes."""
        check_item_size(item)
        try:
            self._transact(
                {"Put": self._put_new(item)}, *({"Update": self._update(each)} for each in updates)
            )
        except _ConditionFailed as failed:
            unmet = [update for number, update in enumerate(updates) if number in failed.updates]
            if not unmet:  # an empty list would mean that all was written
                raise
            return unmet
        return ()

    def _transact(self, *writes: Mapping[str, Any]) -> None:
        token = self.random_bytes(16).hex()  # makes a repeated request idempotent
        self._repeat_on_conflict(
            lambda: self.client.call("TransactWriteItems", TransactItems=writes, ClientRequestToken=token)
        )

    def _put_new(self, item: Item) -> dict[str, Any]:
        condition = "attribute_not_exists(pk)"
        return {"TableName": self.table_name, "Item": to_attributes(item), "ConditionExpression": condition}

    def _update(self, update: Update) -> dict[str, Any]:
        key = to_attributes({"pk": update.pk, "sk": update.sk})
        return {"TableName": self.table_name, "Key": key, **Expressions().build(update.change)}

    def _repeat_on_conflict(self, write: Callable[[], T]) -> T:
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                with _as_store_errors():
                    return write()
            except StoreError as error:
                if error.reason not in _CONFLICTS or attempt == CONFLICT_ATTEMPTS - 1:
                    raise
            share = int.from_bytes(self.random_bytes(2), "big") / 65_536
            self.pause_s(FIRST_CONFLICT_PAUSE_S * 2**attempt * share)
        raise AssertionError("the last attempt returns or raises")


class _ConditionFailed(StoreError):
    """The condition of a write failed. `present` is the existing item, if DynamoDB returned it.

    `updates` has the numbers of the updates of a transaction whose conditions failed.
    """

    def __init__(self, present: Item | None = None, updates: Collection[int] = ()) -> None:
        super().__init__(_FAILED)
        self.present = present
        self.updates = updates


@contextmanager
def _as_store_errors() -> Iterator[None]:
    try:
        try:
            yield
        except AwsError as error:
            raise _map_error(error) from error
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError("malformed_answer") from error


def _map_error(error: AwsError) -> Exception:
    if error.code == _FAILED:
        item = error.members.get("Item")
        return _ConditionFailed(from_attributes(item) if item else None)
    if error.code == "TransactionCanceledException":
        reasons = error.members.get("CancellationReasons", ())
        codes = [reason["Code"] for reason in reasons]
        if not all(isinstance(code, str) for code in codes):
            raise ValueError("not the codes of a cancellation")
        reason = next((code for code in codes if code not in ("None", "ConditionalCheckFailed")), None)
        if reason is None and codes[:1] == ["None"]:  # the first code is that of the new item
            return _ConditionFailed(updates={n for n, code in enumerate(codes[1:]) if code != "None"})
        return StoreError((reason or _FAILED)[:MAX_CODE])
    # The code is ValidationException, as for a key that is too long.
    if "exceeded the maximum allowed size" in error.message:
        return ItemTooLarge(DYNAMODB_ITEM_LIMIT + 1, MAX_ITEM)
    return StoreError(error.code)


def _without_write_id(item: Item) -> dict[str, Value]:
    return {name: value for name, value in item.items() if name != WRITE_ID}


# -- items and changes in requests: API Reference, AttributeValue; Developer Guide, Expressions


def to_attributes(item: Item) -> dict[str, Any]:
    return {name: _to_attribute(value) for name, value in item.items()}


def from_attributes(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """Convert AttributeValues to an item. Raises ValueError."""
    if not isinstance(attributes, Mapping):
        raise ValueError("not an item")
    return {name: _from_attribute(attribute) for name, attribute in attributes.items()}


_OPERATORS: Final[Mapping[type, str]] = {
    **{Equals: "=", Below: "<", Above: ">"},
    **{AllOf: " AND ", AnyOf: " OR "},
}


class Expressions:
    """Writes expressions with placeholders, because many names are reserved words."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def build(self, change: Change) -> dict[str, Any]:
        """Return the condition and the update of a change as parameters of UpdateItem."""
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
            case Equals(name, value) | Below(name, value) | Above(name, value):
                return f"{self._name(name)} {_OPERATORS[type(condition)]} {self._value(value)}"
            case Absent(name):
                return f"attribute_not_exists({self._name(name)})"
            case AllOf(conditions) | AnyOf(conditions):
                terms = [self._condition(each) for each in conditions]
                # DynamoDB refuses redundant parentheses, such as those around a single term.
                return terms[0] if len(terms) == 1 else f"({_OPERATORS[type(condition)].join(terms)})"

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


def _from_attribute(attribute: Any) -> Value:
    match attribute:
        case {"S": str(text), **others} if not others:
            return text
        case {"N": str(digits), **others} if not others:
            return int(digits)
        case {"B": bytes(data), **others} if not others:
            return data
    raise ValueError("not an AttributeValue of a text, a number or bytes")
