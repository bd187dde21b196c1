"""Make sample events that carry a `requestState`: the functions mint it. Each is valid for ten minutes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.ports import Ports
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from mcp_roundtrip_tools.events.messages import Event, call, post, prompt
from mcp_roundtrip_tools.events.stable import (
    DOCUMENT,
    DUPLICATE,
    HYDERABAD,
    ORDERS,
    PROVISION,
    RESOLVE,
    SUMMARIZE,
    TOKYO,
    TRIAGE,
    WEATHER,
    WITH_TASKS,
    WORK_ITEMS,
)

Invoke = Callable[[str, Event], Any]
"""Takes the folder name of a function and an event; returns the function's response."""

RequestState = Callable[[str, Event], str]
"""Takes the folder name of a function and a call that asks; returns the `requestState` of the response."""


def live_events(invoke: Invoke) -> dict[str, Event]:
    """Return the events with a live requestState, by file. Raises AssertionError."""

    def state(function: str, request: Event) -> str:
        return _state(function, invoke(function, request))

    return {**_provision(state), **_weather(state), **_work_items(state), **_summarize(state)}


def _provision(state: RequestState) -> dict[str, Event]:
    # Two flows, so that the events can be invoked in any order: a flow that has become a task stays one.
    retried, sized = (
        call(
            "provision_database",
            ORDERS,
            number=2,
            capabilities=WITH_TASKS,
            inputResponses=_accepted("size", "small"),
            requestState=state("provision", call("provision_database", ORDERS, capabilities=WITH_TASKS)),
        )
        for _ in range(2)
    )
    placed = call(
        "provision_database",
        ORDERS,
        number=3,
        capabilities=WITH_TASKS,
        inputResponses=_accepted("region", "eu-central-1"),
        requestState=state("provision", sized),
    )
    return {
        "live/provision/retry.json": post(PROVISION, retried),
        "live/provision/becomes_a_task.json": post(PROVISION, placed),
    }


def _weather(state: RequestState) -> dict[str, Event]:
    asked = state("weather", call("get_weather", HYDERABAD))
    place = _accepted("place", "Hyderabad, Sindh, Pakistan")
    retry = call("get_weather", HYDERABAD, number=2, inputResponses=place, requestState=asked)
    moved = call("get_weather", TOKYO, number=2, requestState=asked)
    return {
        "live/weather/retry.json": post(WEATHER, retry),
        "live/weather/direct_retry.json": retry,
        "live/weather/moved_state.json": post(WEATHER, moved),
    }


def _work_items(state: RequestState) -> dict[str, Event]:
    asked = state("work_items", call("update_work_item", RESOLVE))
    second = call("update_work_item", RESOLVE, number=2, inputResponses=DUPLICATE, requestState=asked)
    original = {"duplicate_of": {"action": "accept", "content": {"duplicateOfId": 4301}}}
    third = call(
        "update_work_item",
        RESOLVE,
        number=3,
        inputResponses=original,
        requestState=state("work_items", second),
    )
    picked = prompt(
        TRIAGE,
        {},
        number=2,
        inputResponses=_accepted("work_item", "Bug #4301: Sign-in loops when the session cookie has expired"),
        requestState=state("work_items", prompt(TRIAGE, {})),
    )
    return {
        # Before `final`, which resolves an item.
        "live/work_items/prompt_retry.json": post(WORK_ITEMS, picked),
        "live/work_items/retry.json": post(WORK_ITEMS, second),
        "live/work_items/final.json": post(WORK_ITEMS, third),
    }


def _summarize(state: RequestState) -> dict[str, Event]:
    summary = call(
        "summarize",
        DOCUMENT,
        number=2,
        inputResponses=_summary(),
        requestState=state("summarize", call("summarize", DOCUMENT)),
    )
    return {"live/summarize/retry.json": post(SUMMARIZE, summary)}


def _accepted(key: str, value: str) -> dict[str, Any]:
    return {key: {"action": "accept", "content": {"value": value}}}


def _summary() -> dict[str, Any]:
    text = {"type": "text", "text": "Whatever a tool has learned travels with the client."}
    return {
        "summary": {"role": "assistant", "content": text, "model": "a-model", "stopReason": "endTurn"},
        "roots": {"roots": [{"uri": "file:///home/ada/engine", "name": "engine"}]},
    }


def _state(function: str, response: Any) -> str:
    try:
        return str(response["result"]["requestState"])
    except (KeyError, TypeError):
        raise AssertionError(f"{function} did not ask: {json.dumps(response)}") from None


def invoker(functions: Path, ports: Ports) -> Invoke:
    """Return a caller of the functions in this process."""
    loaded = load_function_servers(functions)
    return lambda function, event: handle(loaded[function].endpoint, event, None, lambda: ports)
