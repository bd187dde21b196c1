"""A call of each example that clients make, with the answers of the user and what is in the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from support.clients import MODEL, SUMMARY, Answer
from support.examples import DOCUMENT, HYDERABAD, ORDERS, RESOLVE


@dataclass(frozen=True)
class Call:
    """The route of a tool, its arguments, the answers to its questions, and members of its result."""

    route: str
    arguments: Mapping[str, Any]
    answers: tuple[Answer, ...]
    expected: Mapping[str, Any]


CALLS = {
    "get_weather": Call(
        "/tools/weather",
        HYDERABAD,
        ({"value": "Hyderabad, Sindh, Pakistan"},),
        {"place": "Hyderabad, Sindh, Pakistan", "temperature_c": 22.3},
    ),
    "compare_weather": Call(
        "/tools/weather",
        {"locations": ["Hyderabad", "Tokyo"]},
        ({"value": "Hyderabad, Sindh, Pakistan"},),
        {},
    ),
    "update_work_item": Call(
        "/tools/work_items",
        RESOLVE,
        ({"resolution": "Duplicate"}, {"duplicateOfId": 4301}),
        {
            "text": "Bug #4522 resolved as Duplicate of Bug #4301. "
            "State set to Resolved and duplicate link created."
        },
    ),
    "summarize": Call(
        "/tools/summarize",
        DOCUMENT,
        (),
        {"summary": SUMMARY, "model": MODEL, "project": "engine"},
    ),
    "provision_database": Call(
        "/tools/provision",
        ORDERS,
        ({"value": "small"}, {"value": "eu-west-1"}, {"value": True}),
        {"name": "orders", "size": "small", "region": "eu-west-1", "price": "$26.28 a month"},
    ),
}
