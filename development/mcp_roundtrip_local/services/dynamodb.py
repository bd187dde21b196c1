"""A stand-in for DynamoDB on 127.0.0.1, for the five operations that tasks use.

Tables come to be at their first write, live in memory, and have the keys `pk` and `sk`. Of expressions it
reads what `aws.expressions` writes: comparisons and attribute_not_exists joined by AND and OR, and SET, ADD
and REMOVE of attributes. Any other operation or expression is refused, never ignored. AWS JSON 1.0.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mcp_roundtrip.aws.expressions import from_attributes, to_attributes
from mcp_roundtrip.internal_errors import ItemTooLarge
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
from mcp_roundtrip.tasks.store import MemoryStore, size_of
from mcp_roundtrip_local.http.messages import Reply, Request
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.services.credentials import Credentials

MAX_BODY = 16 * 1024 * 1024
PAGE = 1_000_000
"""Bytes of a page of Query, about."""

_TOKEN = re.compile(r"\s*([()]|[<>=]|AND\b|OR\b|attribute_not_exists\b|[#:]\w+)")
_CLAUSE = re.compile(r"(SET|ADD|REMOVE) ")


class Fault(Exception):
    """An error answer of the service; `item` goes with a condition that failed."""

    def __init__(self, code: str, message: str, item: Item | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.item = item


class FakeDynamoDb:
    """Tables by name. Safe to share between threads.

    `units` are the read and write units that on-demand capacity is billed in, as the Developer Guide has
    them ("Read and write operations"): for every 4 KB that are read consistently, and every 1 KB that is
    written, of the larger item where one replaces another, and whether or not a condition holds.
    """

    def __init__(self) -> None:
        self.units: Counter[str] = Counter()
        self._tables: defaultdict[str, MemoryStore] = defaultdict(MemoryStore)
        self._lock = threading.Lock()

    def table(self, name: str) -> MemoryStore:
        """The items of a table."""
        with self._lock:
            return self._tables[name]

    def PutItem(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("ConditionExpression") != "attribute_not_exists(pk)":
            raise Fault("ValidationException", "this stand-in only puts items that do not exist")
        present = self._of(request).put_new(_item(request["Item"]))
        self._written(_item(request["Item"]))
        if present is not None:
            raise Fault("ConditionalCheckFailedException", "The conditional request failed", present)
        return {}

    def GetItem(self, request: Mapping[str, Any]) -> dict[str, Any]:
        key = _item(request["Key"])
        found = self._of(request).get(str(key["pk"]), str(key["sk"]))
        self._read([found or {}])
        return {} if found is None else {"Item": _wire(found)}

    def Query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["KeyConditionExpression"] != "pk = :pk":
            raise Fault("ValidationException", "this stand-in only queries whole partitions")
        items = self._of(request).query(str(_item(request["ExpressionAttributeValues"])[":pk"]))
        after = _item(request.get("ExclusiveStartKey", {})).get("sk")
        left = [item for item in items if after is None or str(item["sk"]).encode() > str(after).encode()]
        page, size = [], 0
        while left and size < PAGE:
            page.append(left.pop(0))
            size += len(json.dumps(_wire(page[-1])))
        self._read(page)
        last = {"LastEvaluatedKey": _wire({"pk": page[-1]["pk"], "sk": page[-1]["sk"]})} if left else {}
        return {"Items": [_wire(item) for item in page], "Count": len(page), **last}

    def UpdateItem(self, request: Mapping[str, Any]) -> dict[str, Any]:
        key, table = _item(request["Key"]), self._of(request)
        change = _change_of(request)
        present = table.get(str(key["pk"]), str(key["sk"]))
        changed = table.update(str(key["pk"]), str(key["sk"]), change)
        self._written(present or {}, changed or {})
        if changed is None:
            present = table.get(str(key["pk"]), str(key["sk"]))
            raise Fault("ConditionalCheckFailedException", "The conditional request failed", present)
        return {"Attributes": _wire(changed)}

    def TransactWriteItems(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["TransactItems"]:
            case [{"Put": put}, {"Update": update}] if put["TableName"] == update["TableName"]:
                pass
            case _:
                raise Fault("ValidationException", "this stand-in only puts one item and updates another")
        if put.get("ConditionExpression") != "attribute_not_exists(pk)":
            raise Fault("ValidationException", "this stand-in only puts items that do not exist")
        item, key, table = _item(put["Item"]), _item(update["Key"]), self._of(put)
        pk, sk = str(key["pk"]), str(key["sk"])
        is_written = table.put_new_and_update(item, pk, sk, _change_of(update))
        self._bill("write", size_of(item), 1_024, times=2)
        self._bill("write", size_of(table.get(pk, sk) or {}), 1_024, times=2)
        if not is_written:
            raise Fault("TransactionCanceledException", "[None, ConditionalCheckFailed]")
        return {}

    def _of(self, request: Mapping[str, Any]) -> MemoryStore:
        return self.table(request["TableName"])

    def _read(self, items: Sequence[Item]) -> None:
        self._bill("read", sum(map(size_of, items)), 4_096)

    def _written(self, *images: Item) -> None:
        self._bill("write", max(map(size_of, images)), 1_024)

    def _bill(self, kind: str, size: int, unit: int, *, times: int = 1) -> None:
        with self._lock:
            self.units[kind] += times * max(1, -(-size // unit))


@contextmanager
def serve(dynamodb: FakeDynamoDb, port: int = 0, credentials: Credentials | None = None) -> Iterator[str]:
    """Serve it on 127.0.0.1 until the block ends; yields the endpoint URL.

    With `credentials`, only requests that are signed with them are answered.
    """
    respond_to = partial(respond, dynamodb)
    guarded = credentials.guard(respond_to) if credentials else respond_to
    server = HttpServer(guarded, port=port, max_body=MAX_BODY).start()
    try:
        yield server.url
    finally:
        server.close()


def respond(dynamodb: FakeDynamoDb, request: Request) -> Reply:
    """One request, faults included."""
    operation = (request.header("x-amz-target") or "").rpartition(".")[2]
    operations: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "PutItem": dynamodb.PutItem,
        "GetItem": dynamodb.GetItem,
        "Query": dynamodb.Query,
        "UpdateItem": dynamodb.UpdateItem,
        "TransactWriteItems": dynamodb.TransactWriteItems,
    }
    try:
        if operation not in operations:
            raise Fault("UnknownOperationException", f"{operation!r} is not an operation of this stand-in")
        return _reply(200, operations[operation](json.loads(request.body)))
    except Fault as fault:
        told: dict[str, Any] = {
            "__type": f"com.amazonaws.dynamodb.v20120810#{fault.code}",
            "message": str(fault),
        }
        if fault.code == "TransactionCanceledException":
            told["CancellationReasons"] = [{"Code": "None"}, {"Code": "ConditionalCheckFailed"}]
        return _reply(400, told if fault.item is None else {**told, "Item": _wire(fault.item)})
    except ItemTooLarge:
        text = "Item size has exceeded the maximum allowed size"
        return _reply(400, {"__type": "com.amazon.coral.validate#ValidationException", "message": text})


def _reply(status: int, document: Mapping[str, Any]) -> Reply:
    headers = (("Content-Type", "application/x-amz-json-1.0"),)
    return Reply(status, headers, json.dumps(document).encode())


def _item(attributes: Mapping[str, Any]) -> dict[str, Value]:
    """From the wire, where bytes are Base64."""
    decoded = {
        name: {"B": base64.b64decode(attribute["B"])} if "B" in attribute else attribute
        for name, attribute in attributes.items()
    }
    return from_attributes(decoded)


def _wire(item: Item) -> dict[str, Any]:
    return {
        name: {"B": base64.b64encode(attribute["B"]).decode()} if "B" in attribute else attribute
        for name, attribute in to_attributes(item).items()
    }


def _change_of(request: Mapping[str, Any]) -> Change:
    names = request["ExpressionAttributeNames"]
    values = _item(request["ExpressionAttributeValues"])
    return _change(request["UpdateExpression"], request["ConditionExpression"], names, values)


def _change(update: str, condition: str, names: Mapping[str, str], values: Mapping[str, Value]) -> Change:
    parts = _CLAUSE.split(update)[1:]
    clauses = {
        verb: [term.strip() for term in terms.split(",")]
        for verb, terms in zip(parts[::2], parts[1::2], strict=True)
    }
    pairs = (term.split(" = ") for term in clauses.get("SET", ()))
    added = (term.split(" ") for term in clauses.get("ADD", ()))
    tokens = _TOKEN.findall(condition)
    parsed = _any_of(tokens, names, values)
    if tokens:
        raise Fault("ValidationException", f"not understood: {condition}")
    return Change(
        parsed,
        set={names[name]: values[value] for name, value in pairs},
        add={names[name]: int(values[value]) for name, value in added},
        remove=tuple(names[name] for name in clauses.get("REMOVE", ())),
    )


def _any_of(tokens: list[str], names: Mapping[str, str], values: Mapping[str, Value]) -> Condition:
    conditions = [_all_of(tokens, names, values)]
    while tokens[:1] == ["OR"]:
        tokens.pop(0)
        conditions.append(_all_of(tokens, names, values))
    return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))


def _all_of(tokens: list[str], names: Mapping[str, str], values: Mapping[str, Value]) -> Condition:
    conditions = [_one(tokens, names, values)]
    while tokens[:1] == ["AND"]:
        tokens.pop(0)
        conditions.append(_one(tokens, names, values))
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def _one(tokens: list[str], names: Mapping[str, str], values: Mapping[str, Value]) -> Condition:
    first = tokens.pop(0)
    if first == "(":
        inner = _any_of(tokens, names, values)
        tokens.pop(0)
        return inner
    if first == "attribute_not_exists":
        _, name, _ = tokens.pop(0), tokens.pop(0), tokens.pop(0)
        return Absent(names[name])
    operator, value = tokens.pop(0), values[tokens.pop(0)]
    if operator == "=":
        return Equals(names[first], value)
    return (Below if operator == "<" else Above)(names[first], int(value))
