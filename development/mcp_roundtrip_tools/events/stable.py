"""The sample events that never change, by file: `<function>/<case>.json`.

Events of other sources than HTTP APIs with payload format 2.0 are in `<source>/<function>/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.protocol.constants import (
    COMPLETION_COMPLETE,
    DISCOVER,
    PROMPTS_LIST,
    RESOURCES_LIST,
    RESOURCES_TEMPLATES_LIST,
    TASKS_EXTENSION,
    TASKS_GET,
    TOOLS_LIST,
)
from mcp_roundtrip_tools.events.messages import (
    ASKABLE,
    RECEIVED_AT,
    Event,
    call,
    event,
    message,
    notification,
    post,
    prompt,
    read,
)
from mcp_roundtrip_tools.events.sources import FORMATS, alb
from mcp_roundtrip_tools.run.services.message_queue import Message
from mcp_roundtrip_tools.run.services.sqs import event_record

WITH_TASKS: Mapping[str, Any] = {**ASKABLE, "extensions": {TASKS_EXTENSION: {}}}
"""Capabilities of a client that also supports tasks."""

MCP = "/mcp"
WEATHER, WORK_ITEMS, SUMMARIZE = "/tools/weather", "/tools/work_items", "/tools/summarize"
PROVISION, APPROVAL = "/tools/provision", "/tools/approval"

HYDERABAD = {"location": "Hyderabad"}
TOKYO = {"location": "Tokyo"}
TWO_CITIES = {"locations": ["Tokyo", "Hyderabad"]}
RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
RFC = "https://www.rfc-editor.org/rfc/rfc9110.txt"

DOCUMENT = {
    "text": (
        "Each request may land on a different execution environment. The server keeps nothing between "
        "requests. What a tool has learned travels inside requestState. The client sends requestState back "
        "with its answers. The next environment replays the tool against it."
    ),
    "uri": "file:///home/ada/engine/notes.md",
}
FORECAST = "weather://forecast/{place}"
TOKYO_FORECAST = "weather://forecast/Tokyo%2C%20Japan"
PLACE: Mapping[str, Any] = {
    "ref": {"type": "ref/resource", "uri": FORECAST},
    "argument": {"name": "place", "value": "hyd"},
}
TRIAGE = "triage"
WORK_ITEM: Mapping[str, Any] = {
    "ref": {"type": "ref/prompt", "name": TRIAGE},
    "argument": {"name": "workItemId", "value": "4"},
}
PRICES = "provision://prices"
DUPLICATE = {"resolution": {"action": "accept", "content": {"resolution": "Duplicate"}}}

ORDERS = {"name": "orders"}
EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}

# A task that does not exist: its id, and the key of its item.
NO_TASK = "bm9ib2R5LWhhcy1jcmVhdGVkLXRoaXMt"
NO_ITEM = {"task": f"{'0' * 32}#{NO_TASK}"}

# A well-formed token without a valid signature.
FORGED = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImZvcmdlZCIsInR5cCI6Im1jcC1ycytqd3QifQ.e30." + "A" * 86


def stable_events() -> dict[str, Event]:
    """Return the events by file. They are the same in every process."""
    return {
        **_front_door(),
        **_weather(),
        **_work_items(),
        **_summarize(),
        **_provision(),
        **_approval(),
        **_other_sources(),
    }


def _front_door() -> dict[str, Event]:
    return {
        "front_door/discover.json": post(MCP, message(DISCOVER)),
        "front_door/list.json": post(MCP, message(TOOLS_LIST)),
        "front_door/notification.json": post(MCP, notification("notifications/cancelled", requestId=1)),
        "front_door/get.json": event("GET", MCP, {}),
        "front_door/question_page.json": event(
            "GET", f"{MCP}/questions?token=unknown", {"accept": "text/html"}, route=f"{MCP}/questions"
        ),
        "front_door/initialize.json": event(
            "POST", MCP, {"content-type": "application/json"}, _initialize("2025-11-25")
        ),
        "front_door/prompts.json": post(MCP, message(PROMPTS_LIST)),
        "front_door/resources.json": post(MCP, message(RESOURCES_LIST)),
        "front_door/templates.json": post(MCP, message(RESOURCES_TEMPLATES_LIST)),
        "front_door/unknown_method.json": post(MCP, message("resources/subscribe", uri=PRICES)),
        "front_door/unknown_prompt.json": post(MCP, prompt("no_such_prompt", {})),
        "front_door/unknown_resource.json": post(MCP, read("no-such://resource")),
        "front_door/unknown_tool.json": post(MCP, call("no_such_tool", {})),
        "front_door/unknown_task.json": post(MCP, _tasks_get(WITH_TASKS)),
        "front_door/task_without_extension.json": post(MCP, _tasks_get(ASKABLE)),
        "front_door/direct_list.json": message(TOOLS_LIST),
    }


def _weather() -> dict[str, Event]:
    asks = call("get_weather", HYDERABAD)
    unnamed = {name: member for name, member in asks["params"].items() if name != "_meta"}
    forged = call("get_weather", HYDERABAD, requestState=FORGED)
    return {
        "weather/discover.json": post(WEATHER, message(DISCOVER)),
        "weather/call.json": post(WEATHER, asks),
        "weather/call_at_once.json": post(WEATHER, call("get_weather", TOKYO)),
        "weather/bad_arguments.json": post(WEATHER, call("get_weather", {"city": "Tokyo"})),
        "weather/without_elicitation.json": post(WEATHER, call("get_weather", HYDERABAD, capabilities={})),
        "weather/header_mismatch.json": post(WEATHER, asks, mcp_name="another_tool"),
        "weather/missing_meta.json": post(WEATHER, {**asks, "params": unnamed}),
        "weather/not_json.json": {**post(WEATHER, asks), "body": "{"},
        "weather/forged_state.json": post(WEATHER, forged),
        "weather/templates.json": post(WEATHER, message(RESOURCES_TEMPLATES_LIST)),
        "weather/compare.json": post(WEATHER, call("compare_weather", TWO_CITIES)),
        "weather/read_template.json": post(WEATHER, read(TOKYO_FORECAST)),
        "weather/read_unknown_place.json": post(WEATHER, read("weather://forecast/Atlantis")),
        "weather/complete.json": post(WEATHER, message(COMPLETION_COMPLETE, **PLACE)),
        "weather/direct_read.json": read(TOKYO_FORECAST),
        "weather/direct_call.json": asks,
        "weather/direct_forged_state.json": forged,
        "weather/direct_notification.json": notification("notifications/cancelled", requestId=1),
    }


def _work_items() -> dict[str, Event]:
    answered = call("update_work_item", RESOLVE, number=2, inputResponses=DUPLICATE)
    missing = call("update_work_item", {"workItemId": 1, "fields": {"System.State": "Active"}})
    return {
        "work_items/call.json": post(WORK_ITEMS, call("update_work_item", RESOLVE)),
        "work_items/retry_without_state.json": post(WORK_ITEMS, answered),
        "work_items/unknown_work_item.json": post(WORK_ITEMS, missing),
        "work_items/prompts.json": post(WORK_ITEMS, message(PROMPTS_LIST)),
        "work_items/prompt.json": post(WORK_ITEMS, prompt(TRIAGE, {"workItemId": "4522"})),
        "work_items/prompt_asks.json": post(WORK_ITEMS, prompt(TRIAGE, {})),
        "work_items/prompt_bad_arguments.json": post(WORK_ITEMS, prompt(TRIAGE, {"workItemId": "first"})),
        "work_items/complete.json": post(WORK_ITEMS, message(COMPLETION_COMPLETE, **WORK_ITEM)),
        # A prompt has no page to ask on, in place of its client.
        "work_items/missing_capability.json": post(WORK_ITEMS, prompt(TRIAGE, {}, capabilities={})),
        "work_items/direct_call.json": call("update_work_item", RESOLVE),
    }


def _summarize() -> dict[str, Event]:
    return {
        "summarize/call.json": post(SUMMARIZE, call("summarize", DOCUMENT)),
        "summarize/without_capabilities.json": post(SUMMARIZE, call("summarize", DOCUMENT, capabilities={})),
        "summarize/rfc.json": post(SUMMARIZE, call("summarize", {"uri": RFC})),
        "summarize/direct_call.json": call("summarize", DOCUMENT),
    }


def _provision() -> dict[str, Event]:
    asks = call("provision_database", ORDERS, capabilities=WITH_TASKS)
    unfit = call("provision_database", {"name": "Orders!"}, capabilities=WITH_TASKS)
    return {
        "provision/call.json": post(PROVISION, asks),
        "provision/without_tasks.json": post(PROVISION, call("provision_database", ORDERS)),
        "provision/bad_arguments.json": post(PROVISION, unfit),
        "provision/read.json": post(PROVISION, read(PRICES)),
        "provision/direct_call.json": asks,
        "provision_worker/invoke.json": NO_ITEM,
        "provision_worker/queue.json": {
            "Records": [
                event_record(
                    Message(
                        json.dumps(NO_ITEM),
                        sent_s=RECEIVED_AT,
                        visible_s=RECEIVED_AT,
                        id="059f36b4-87a3-44ab-83d2-661975830a7d",
                        receives=1,
                        first_received_s=RECEIVED_AT,
                    ),
                    "arn:aws:sqs:eu-west-1:123456789012:tasks",
                )
            ]
        },
    }


def _approval() -> dict[str, Event]:
    anonymous = call("request_approval", EXPENSE)
    reference = "0" * 32
    page = event(
        "GET",
        f"/approvals/{reference}",
        {"accept": "text/html"},
        route="/approvals/{reference}",
        variables={"reference": reference},
    )
    return {
        "approval/call.json": post(APPROVAL, anonymous),
        "approval/direct_call.json": anonymous,
        "approval/page.json": page,
    }


def _other_sources() -> dict[str, Event]:
    asks = post(WEATHER, call("get_weather", HYDERABAD))
    health_check = event("GET", WEATHER, {"user-agent": "ELB-HealthChecker/2.0"})
    return {
        **{f"{source}/weather/call.json": sent(asks) for source, sent in FORMATS.items()},
        "alb/weather/health_check.json": alb(health_check),
    }


def _tasks_get(capabilities: Mapping[str, Any]) -> Event:
    return message(TASKS_GET, capabilities=capabilities, taskId=NO_TASK)


def _initialize(version: str) -> Event:
    client = {"name": "sample-events", "version": "1.0.0"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
