"""A DynamoDB table in memory, for the thousands of calls of the corpus: moto takes 5 ms for each.

It knows the operations and expressions that the layer uses, and refuses every other one. It has no limits of
size. A test compares it with moto.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from moto.dynamodb.comparisons import get_filter_expression
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.dynamo_type import Item as MotoItem

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault

Item = dict[str, Any]

_TOKEN: Final = re.compile(r"\s*([=<>(),]|[\w#:.]+)")
_UPDATE: Final = re.compile(r"(SET|ADD|REMOVE) (.*?)(?= (?:SET|ADD|REMOVE) |$)")
_CLAUSE: Final = re.compile(r" = | ")


class Refusal(ServiceFault):
    """An error response with further members."""

    def __init__(self, code: str, message: str, **members: Any) -> None:
        super().__init__(code, message)
        self.members = members

    def response(self, content_type: str = "application/json") -> Response:
        plain = super().response(content_type)
        return replace(plain, body=json.dumps({**json.loads(plain.body), **self.members}).encode())


@dataclass
class Table:
    """A table with the keys `pk` and `sk`."""

    name: str
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    _tokens: set[str] = field(default_factory=set)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute an operation. Raises ServiceFault."""
        known = {
            "GetItem": self._get,
            "PutItem": self._put,
            "UpdateItem": self._update,
            "Query": self._query,
            "TransactWriteItems": self._transact,
        }
        return known[operation](request)

    def _found(self, key: Mapping[str, Any]) -> Item | None:
        return self.items.get((key["pk"]["S"], key["sk"]["S"]))

    def _get(self, request: Mapping[str, Any]) -> dict[str, Any]:
        item = self._found(request["Key"])
        return {} if item is None else {"Item": item}

    def _put(self, request: Mapping[str, Any]) -> dict[str, Any]:
        item = request["Item"]
        self._check(request, self._found(item))
        self._store(item)
        return {}

    def _update(self, request: Mapping[str, Any]) -> dict[str, Any]:
        before = self._found(request["Key"])
        self._check(request, before)
        return {"Attributes": self._store(_updated(before or dict(request["Key"]), request))}

    def _store(self, item: Item) -> Item:
        self.items[item["pk"]["S"], item["sk"]["S"]] = item
        return item

    def _query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        condition = request["KeyConditionExpression"]
        return {"Items": [item for _, item in sorted(self.items.items()) if _holds(condition, request, item)]}

    def _transact(self, request: Mapping[str, Any]) -> dict[str, Any]:
        token = request.get("ClientRequestToken", "")
        if token in self._tokens:
            return {}
        writes = [next(iter(each.items())) for each in request["TransactItems"]]
        reasons = [self._reason(write) for _, write in writes]
        if set(reasons) != {"None"}:
            codes = [{"Code": reason} for reason in reasons]
            raise Refusal("TransactionCanceledException", "cancelled", CancellationReasons=codes)
        for kind, write in writes:
            (self._put if kind == "Put" else self._update)(write)
        if token:
            self._tokens.add(token)
        return {}

    def _reason(self, write: Mapping[str, Any]) -> str:
        try:
            self._check(write, self._found(write.get("Key") or write["Item"]))
        except Refusal:
            return "ConditionalCheckFailed"
        return "None"

    def _check(self, request: Mapping[str, Any], item: Item | None) -> None:
        condition = request.get("ConditionExpression")
        if condition is None or _holds(condition, request, item or {}):
            return
        shows = item is not None and request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        shown = {"Item": item} if shows else {}
        raise Refusal("ConditionalCheckFailedException", "The conditional request failed", **shown)


def spelled_out(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose expressions have names and values in place of `#0` and `:0`.

    So a record does not depend on how these are numbered, or in which order an update lists its attributes.
    """
    members = {name: value for name, value in request.items() if not name.startswith("ExpressionAttribute")}
    for name in ("ConditionExpression", "KeyConditionExpression"):
        if name in request:
            members[name] = _TOKEN.sub(lambda found: _spelled_out(found, request), request[name])
    if "UpdateExpression" in request:
        members["UpdateExpression"] = _clauses(request)
    if "TransactItems" in request:
        writes = [next(iter(each.items())) for each in request["TransactItems"]]
        members["TransactItems"] = [{kind: spelled_out(write)} for kind, write in writes]
    return members


def _spelled_out(found: re.Match[str], request: Mapping[str, Any]) -> str:
    text, token = found[0], found[1]
    if token.startswith(":"):
        [(kind, value)] = request["ExpressionAttributeValues"][token].items()
        return text.replace(token, value if kind == "N" else json.dumps(value))
    return text.replace(token, request.get("ExpressionAttributeNames", {}).get(token, token))


def _clauses(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an update sets, adds and removes, by attribute."""
    names, values = request["ExpressionAttributeNames"], request.get("ExpressionAttributeValues", {})
    clauses: dict[str, Any] = {}
    for verb, listed in _UPDATE.findall(request["UpdateExpression"]):
        pairs = [_CLAUSE.split(clause) for clause in listed.split(", ")]
        clauses[verb] = {names[name]: values[value[0]] if value else {} for name, *value in pairs}
    return clauses


def _updated(item: Item, request: Mapping[str, Any]) -> Item:
    """Return the item after `SET a = :v, … ADD n :v, … REMOVE a, …`."""
    after = dict(item)
    for verb, attributes in _clauses(request).items():
        for name, value in attributes.items():
            if verb == "REMOVE":
                after.pop(name, None)
            elif verb == "SET":
                after[name] = value
            else:
                after[name] = {"N": str(int(after.get(name, {"N": "0"})["N"]) + int(value["N"]))}
    return after


def _holds(expression: str, request: Mapping[str, Any], item: Item) -> bool:
    names, values = request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")
    key, sort_key = (DynamoType(item.get(name, {"S": ""})) for name in ("pk", "sk"))
    # moto measures each attribute that it is given, which takes long.
    named = {name: item[name] for name in ("pk", "sk", *(names or {}).values()) if name in item}
    condition = _parsed(expression, json.dumps(names), json.dumps(values))
    return bool(condition.expr(MotoItem(key, sort_key, named)))


@cache  # moto takes a millisecond, and the cases have the same conditions
def _parsed(expression: str, names: str, values: str) -> Any:
    return get_filter_expression(expression, json.loads(names), json.loads(values))
