"""The most expensive known requests: bodies that cost the server far more than their size."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from random import Random
from sys import hash_info
from typing import Any

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip.schema.pattern_checks import pattern_size
from mcp_roundtrip.schema.validation_cost import MATCHED_PER_CHECK, MAX_WORK
from support.costly_schemas import SEARCH
from support.event_sources import sent_by, with_header
from support.messages import META, call, headers, http_event, message

Event = Mapping[str, Any]

MIXED = "".join(Random(1).choices("ab", k=20_000))
"""Letters among which a pattern such as `a[ab]{900}c` has too many states to remember."""

SLOT = "@@"
"""The placeholder in a request for the repeated JSON."""

ROOM = MAX_BODY_BYTES - 4_096
"""Bytes of a body that are available for the repeated JSON."""


def filled(request: Mapping[str, Any], json_text: str) -> Event:
    """Return the event of a request with this JSON in place of `SLOT`, and its headers."""
    text = json.dumps(request, ensure_ascii=False).replace(f'"{SLOT}"', json_text)
    try:
        mirrored = headers(json.loads(text))
    except (ValueError, RecursionError):
        mirrored = headers(request)
    return http_event(text, headers=mirrored)


def repeated(
    unit: str, *, start: str = "[", end: str = "]", room: int = ROOM, most: int | None = None
) -> str:
    """Return an array with as many units as fit, at most `most`."""
    count = room // (len(unit.encode()) + 1)
    return start + ",".join([unit] * min(count, most or count)) + end


def members(value: str, *, most: int | None = None, prefix: str = "") -> str:
    """Return an object with as many members of this value as fit."""
    count = min(ROOM // (len(value) + len(prefix) + 11), most or 10**9)
    return "{" + ",".join(f'"{prefix}{n:07}":{value}' for n in range(count)) + "}"


def string(unit: str, room: int = ROOM) -> str:
    """Return a string of as many units as fit. `unit` is in JSON notation."""
    return '"' + unit * (room // len(unit.encode())) + '"'


def words(pattern: str, unit: str = "a") -> str:
    """Return the longest string that is matched with such a pattern."""
    # In characters of JSON, with what is around the text.
    longest = MAX_WORK * MATCHED_PER_CHECK // pattern_size(pattern) - 200
    return string(unit, longest if unit.isascii() else longest // 6 * len(unit.encode()))


def nested(inner: str, levels: int, around: str) -> str:
    """Return `inner` within `levels` of `around`, which has the placeholder."""
    left, right = around.split(SLOT)
    return left * levels + inner + right * levels


def _tree(levels: int) -> str:
    if levels == 0:
        return "{}"
    below = _tree(levels - 1)
    return f'{{"left":{below},"right":{below}}}'


def _caterpillar() -> str:
    return nested(_tree(12), 45, f'{{"left":{SLOT}}}')


def tool(name: str, member: str, json_text: str, **params: Any) -> Event:
    return filled(call(name, {member: SLOT}, **params), json_text)


def arguments(name: str, json_text: str) -> Event:
    request = call(name)
    request["params"]["arguments"] = SLOT
    return filled(request, json_text)


def answer(name: str, question: str, content: str) -> Event:
    """Return a call with the answer to a form."""
    responses = {question: {"action": "accept", "content": SLOT}}
    return filled(call(name, inputResponses=responses), content)


def legacy(request: Mapping[str, Any], json_text: str) -> Event:
    """Return the request of a client of 2025-11-25."""
    body = {**request, "params": {k: v for k, v in request["params"].items() if k != "_meta"}}
    text = json.dumps(body).replace(f'"{SLOT}"', json_text)
    return http_event(text, headers={"mcp-protocol-version": "2025-11-25"})


def _encoded(event: Event) -> Event:
    return {**event, "body": b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}


TASKS = {**META, META_CLIENT_CAPABILITIES: {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}}

MANY = 19_000
"""The number of values that the default limit accepts."""

ALIKE = [*range(0, MANY * hash_info.modulus, hash_info.modulus)]
"""Integers whose hash in Python is 0."""

BODIES: Mapping[str, Callable[[], Event]] = {
    # JSON itself
    "empty arrays": lambda: tool("anything", "value", repeated("[]")),
    "empty objects": lambda: tool("anything", "value", repeated("{}")),
    "duplicate names": lambda: tool("anything", "value", repeated('"a":1', start="{", end="}")),
    "deep arrays": lambda: tool("anything", "value", "[" * ROOM),
    "long numbers": lambda: tool("anything", "value", '{"a":' + repeated("9" * 4_300) + "}"),
    "a number with many digits": lambda: tool("anything", "value", '{"a":0.' + "1" * ROOM + "}"),
    "escapes": lambda: tool("anything", "value", '{"a":' + string("\\u0000") + "}"),
    "one wide character in a long text": lambda: tool("echo", "text", '"😀' + string("a")[1:]),
    "a text of wide characters": lambda: tool("echo", "text", string("😀")),
    "a text of brackets and commas": lambda: tool("echo", "text", string("[{,")),
    "short texts": lambda: tool("anything", "value", '{"a":' + repeated('""') + "}"),
    "an unterminated text": lambda: tool("echo", "text", '"' + "\\n" * (ROOM // 2)),
    "a batch": lambda: http_event(repeated('{"jsonrpc":"2.0","id":1,"method":"ping"}')),
    "base64": lambda: _encoded(tool("echo", "text", string("é"))),
    "a direct invocation": lambda: {**call("anything", {"value": {"a": [[]] * 1_400_000}})},
    # values that violate their types
    "texts for integers": lambda: tool("integers", "items", repeated('""', most=MANY)),
    "integers with one hash": lambda: tool("numbers", "items", json.dumps(ALIKE)),
    "empty models": lambda: tool("models", "items", repeated("{}", most=MANY)),
    "empty models by name": lambda: tool("mapped", "items", members("{}", most=MANY)),
    "a tree of empty models": lambda: tool("tree", "root", _tree(12)),
    "a deep tree of empty models": lambda: tool("tree", "root", _caterpillar()),
    "a union that recurses": lambda: tool(
        "formula", "expression", nested('""', 60, f'{{"op":"add","left":{SLOT},"right":1}}')
    ),
    "a union that recurses, with a number": lambda: tool(
        "formula", "expression", nested('""', 60, f'{{"op":"add","left":{SLOT},"right":1.0}}')
    ),
    "folders in folders, with a number": lambda: tool(
        "folder", "root", nested('""', 29, f'{{"kind":"folder","size":1.0,"children":[{SLOT}]}}')
    ),
    "a long text in a deep tree": lambda: tool(
        "tree", "root", nested('{"zzz":' + string("a") + "}", 55, f'{{"left":{SLOT}}}')
    ),
    "a long text in a model": lambda: tool("mapped", "items", '{"a":{"zzz":' + string("a") + "}}"),
    "a long text in a wide model": lambda: tool("wide", "value", '{"zzz":' + string("a") + "}"),
    "many values in a wide model": lambda: tool("wide", "value", f'{{"zzz":{repeated("{}", most=MANY)}}}'),
    "records in a short list": lambda: tool("records", "items", repeated("{}", room=4_000)),
    "none of many options in a short list": lambda: tool("options", "items", repeated("0", room=4_000)),
    "choices that double": lambda: tool(
        "chosen", "items", repeated(nested("1", 7, f'{{"child":{SLOT}}}'), most=MANY // 8)
    ),
    "alike choices": lambda: tool("alike_choices", "items", repeated('{"a99":1}', most=MANY // 2)),
    "a long text in a union": lambda: tool(
        "animals", "items", '[{"kind":"cat","name":' + string("a") + "}]"
    ),
    "free values": lambda: tool("free", "value", repeated('{"a":[]}', most=MANY // 2)),
    "members of no alternative": lambda: tool("animals", "items", repeated('{"kind":"cow"}', most=MANY // 2)),
    "unknown arguments": lambda: arguments("echo", members("1", most=MANY)),
    "digits for a decimal": lambda: tool("scalars", "amount", string("9")),
    "digits for an integer": lambda: tool("scalars", "number", string("9")),
    "a long text for a union": lambda: tool("scalars", "either", string("9")),
    "a long link": lambda: tool("scalars", "link", '"https://' + string("a/../")[1:]),
    "many hosts": lambda: tool("scalars", "database", '"postgres://' + string("a,", ROOM - 20)[1:-1] + 'a"'),
    "a pattern that backtracks": lambda: tool("scalars", "code", string("a", room=ROOM - 1)[:-1] + '!"'),
    "counted: a text of the longest length": lambda: tool("patterns", "text", words(SEARCH)),
    "counted: a text that is too long": lambda: tool("raw_counted", "either", string(MIXED)),
    "counted: wide characters": lambda: tool("patterns", "text", words(SEARCH, "日")),
    "counted: a limited text": lambda: tool("patterns", "counted", string("a", 800)),
    "counted: limited texts": lambda: tool(
        "patterns", "counted_items", repeated(string("a", 800), most=MANY)
    ),
    "counted: a union": lambda: tool("patterns", "either", words("(?:a{900}|b{500})", "ab")),
    "counted: a union, checked twice": lambda: filled(
        call("patterns", {"either": SLOT, "number": 1.0}), words("(?:a{900}|b{500})", "ab")
    ),
    "counted: a short union": lambda: filled(
        call("patterns", {"either": SLOT, "number": 1.0}), string("aab", 11_000)
    ),
    "counted: names": lambda: tool("patterns", "by_name", members("1", most=MANY, prefix="a" * 90)),
    "counted: an answer": lambda: answer("asks_code", "code", f'{{"code":{words(SEARCH)}}}'),
    "counted: raw": lambda: tool("raw_counted", "text", words(SEARCH)),
    "counted: raw, limited": lambda: tool("raw_counted", "counted", string("a")),
    "counted: raw, a union": lambda: tool("raw_counted", "either", words("(?:a{900}|b{300})", "ab")),
    "counted: raw names": lambda: arguments("raw_counted", members("1", most=MANY, prefix="a" * 90)),
    "a failure with many values": lambda: tool("fails", "value", members('"abcdefgh"', most=MANY)),
    "a failure with many lines": lambda: tool("fails", "value", '{"a":' + string("abcd\\u2028") + "}"),
    # schemas of authors
    "raw: empty objects": lambda: tool("raw_objects", "items", repeated("{}", most=MANY)),
    "raw: equal-looking items": lambda: tool(
        "raw_unique", "items", "[" + ",".join(f'{{"a":[1,{{"b":{n}}}]}}' for n in range(MANY // 6)) + "]"
    ),
    "raw: long integers that are compared with each other": lambda: tool(
        "raw_unique", "items", json.dumps([2**480 + number for number in range(1_600)])
    ),
    "raw: a pattern that backtracks": lambda: tool("raw_pattern", "text", string("a")[:-1] + '!"'),
    "raw: names that backtrack": lambda: arguments("raw_pattern", members("1", most=MANY, prefix="x" * 100)),
    "raw: a long text in the wrong place": lambda: tool("raw_branches", "a", string("😀")),
    "raw: branches": lambda: tool("raw_branches", "a", repeated("{}", most=MANY)),
    "raw: recursion": lambda: tool("raw_recursive", "root", nested("[]", 60, f'{{"child":{SLOT}}}')),
    "raw: unevaluated items": lambda: tool("raw_unevaluated", "items", repeated("1", most=MANY)),
    "raw: unevaluated names": lambda: arguments("raw_unevaluated", members("1", most=MANY, prefix="a")),
    "raw: names": lambda: tool("raw_names", "items", members("1", most=600, prefix="A")),
    "raw: names of no pattern": lambda: tool("raw_names", "last", members("1", most=MANY)[:-1] + ',"z":""}'),
    "raw: none of many options": lambda: tool("raw_options", "items", repeated("0", most=13_000)),
    "raw: alternatives with members": lambda: tool("raw_alternatives", "items", repeated("0", most=3_000)),
    "raw: null for many members": lambda: arguments("raw_optional", members("null", most=900)),
    "raw: members that require members": lambda: tool(
        "raw_dependent", "items", repeated(members("1", most=40), most=MANY // 41)
    ),
    "raw: decimals": lambda: tool("raw_decimals", "items", repeated("1234567890123.678", most=MANY)),
    "raw: long numbers": lambda: tool("raw_numbers", "items", repeated("9" * 4_300)),
    "raw: small numbers": lambda: tool("raw_numbers", "items", repeated("1.1e-300", most=MANY)),
    "raw: references": lambda: tool("raw_references", "items", '{"a1":1}'),
    "raw: formats of members": lambda: tool("raw_references", "texts", repeated('"aaaa"', most=MANY)),
    "raw: levels that multiply": lambda: tool(
        "raw_levels", "items", repeated(nested('""', 6, f'{{"a":{SLOT}}}'), most=MANY // 7)
    ),
    # arguments bound to a state or a task
    "a long text bound to a state": lambda: tool("asks", "text", string("😀")),
    "long numbers bound to a state": lambda: tool(
        "asks_about", "value", '{"a":' + repeated("9" * 4_300) + "}"
    ),
    "many values stored in a task": lambda: tool("works", "value", members('"a"', most=MANY), meta=TASKS),
    "a long text stored in a task": lambda: tool("works", "value", f'{{"a":{string("😀")}}}', meta=TASKS),
    "a text in a header": lambda: region(string("é")),
    "many headers": lambda: many_headers(),
    # other parts of requests
    "a long progress token": lambda: filled(
        call("reports", meta={**META, "progressToken": SLOT}), string("a")
    ),
    "many reports": lambda: filled(
        call("reports", {"count": 10_000}, meta={**META, "progressToken": SLOT}),
        string("a", 1_024),
    ),
    "answers": lambda: answer("asks", "note", members("1", most=MANY)),
    "a long answer": lambda: answer("asks", "note", f'{{"count":1,"title":{string("é")}}}'),
    "many answers": lambda: filled(
        call("asks_later", inputResponses=SLOT), members('{"action":"accept"}', most=MANY // 2)
    ),
    "sampled blocks": lambda: filled(
        call("samples", inputResponses={"roots": {"roots": SLOT}}), repeated('{"uri":"a:b"}', most=MANY // 2)
    ),
    "a long state": lambda: filled(call("asks", requestState=SLOT), string("a")),
    "a state of dots": lambda: filled(call("asks", requestState=SLOT), string(".", 200_000)),
    "a bomb in _meta": lambda: filled(call("echo", {"text": ""}, meta={**META, "x": SLOT}), members("[]")),
    "a long trace": lambda: filled(
        call("echo", {"text": ""}, meta={**META, "baggage": SLOT}), string("a=b;c ;d = e ,")
    ),
    "many capabilities": lambda: filled(
        call("asks", meta={**META, META_CLIENT_CAPABILITIES: SLOT}), members("{}", most=MANY)
    ),
    "a long name": lambda: filled(call(SLOT), string("a")),
    "a long method": lambda: filled(message(SLOT), string("a")),
    "a long id": lambda: filled({**call("echo", {"text": ""}), "id": SLOT}, string("a")),
    "a long URI": lambda: filled(message("resources/read", uri=SLOT), '"note://' + string("%41")[1:]),
    "a URI of slashes": lambda: filled(message("resources/read", uri=SLOT), '"note://' + string("/")[1:]),
    "a long prompt": lambda: filled(
        message("prompts/get", name="prompt", arguments={"topic": SLOT}), string("é")
    ),
    "a long completion": lambda: filled(
        message(
            "completion/complete",
            ref={"type": "ref/prompt", "name": "prompt"},
            argument={"name": "topic", "value": SLOT},
        ),
        string("é"),
    ),
    "a long cursor": lambda: filled(message("tools/list", cursor=SLOT), string("a")),
    "a task id": lambda: filled(message("tasks/get", taskId=SLOT, meta=TASKS), string("a")),
    "task answers": lambda: filled(
        message("tasks/update", taskId="a", inputResponses=SLOT, meta=TASKS),
        members('{"action":"accept"}', most=MANY // 2),
    ),
    "an initialize": lambda: legacy(
        message("initialize", protocolVersion="2025-11-25", capabilities=SLOT, clientInfo={}),
        members("{}", most=MANY),
    ),
    "models of a legacy client": lambda: legacy(call("models", {"items": SLOT}), repeated("{}", most=MANY)),
    "a notification": lambda: filled(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": SLOT}}, repeated("{}")
    ),
}  # fmt: skip


def region(json_text: str) -> Event:
    """Return a call with an argument that a header mirrors."""
    event = tool("region", "name", json_text)
    value = {"mcp-param-region": encode_header(json.loads(json_text))}
    return {**event, "headers": {**event["headers"], **value}}


def many_headers() -> Event:
    """Return the event of a load balancer with a header of many values."""
    event = sent_by("alb_multi_value", call("echo", {"text": ""}))
    return with_header(event, "x-many", *["a"] * 500_000)
