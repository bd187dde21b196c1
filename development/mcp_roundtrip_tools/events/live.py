"""Make the sample events that carry a live `requestState`: the functions mint it when this runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_roundtrip import wiring
from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.settings import load_settings
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

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

EVENTS = Path("events")

DEVELOPMENT_KEY_ID = "00000000-0000-4000-8000-000000000001"
DEVELOPMENT_MAC_KEY_ID = "00000000-0000-4000-8000-000000000002"
DEVELOPMENT_ENVIRONMENT: Mapping[str, str] = {
    "MCP_AUTH_MODE": "none",
    "MCP_ISSUER": "urn:mcp-roundtrip:development",
    "MCP_AUDIENCE": "http://127.0.0.1:3000/mcp",
    "MCP_STATE_KEY_ARN": f"arn:aws:kms:us-east-1:000000000000:key/{DEVELOPMENT_KEY_ID}",
    "MCP_STATE_ENCRYPTION_KEY_ARN": f"arn:aws:kms:us-east-1:000000000000:key/{DEVELOPMENT_MAC_KEY_ID}",
    "MCP_TASK_TABLE": "mcp-roundtrip-development",
    "MCP_TASK_WORKER": "arn:aws:lambda:us-east-1:000000000000:function:ProvisionWorkerFunction",
}

_TASK_SETTINGS: Mapping[str, str] = {
    "MCP_TASK_TABLE": DEVELOPMENT_ENVIRONMENT["MCP_TASK_TABLE"],
    "MCP_TASK_WORKER": DEVELOPMENT_ENVIRONMENT["MCP_TASK_WORKER"],
    "MCP_TASK_QUEUE": "https://sqs.us-east-1.amazonaws.com/000000000000/mcp-roundtrip-development",
}

Invoke = Callable[[str, Event], Any]
"""Takes the folder name of a function and an event; returns the function's response."""

RequestState = Callable[[str, Event], str]
"""Takes the folder name of a function and a call that asks; returns the `requestState` of the response."""


class EventsError(McpRoundtripError):
    """A function did not ask, so that its live event cannot be made; the message has its response."""


def development_key() -> EllipticCurvePrivateKey:
    """Return the private key of DEVELOPMENT_ENVIRONMENT. It is public and protects nothing."""
    from cryptography.hazmat.primitives.asymmetric import ec  # the stable events need no key

    secret = int.from_bytes(sha256(b"mcp-roundtrip development key").digest(), "big")
    return ec.derive_private_key(secret, ec.SECP256R1())


def development_secret() -> bytes:
    """Return the secret of DEVELOPMENT_ENVIRONMENT's encryption key, also public."""
    return sha256(b"mcp-roundtrip development encryption key").digest()


def env_vars(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for ``sam local --env-vars``: the settings, and those of tasks if missing.

    sam cannot resolve the template's references to a worker's version and to a queue.
    """
    return {**_TASK_SETTINGS, **settings}


def live_events(invoke: Invoke) -> dict[str, Event]:
    """Return the events with a live requestState, by file. Raises EventsError."""

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
        raise EventsError(f"{function} did not ask: {json.dumps(response)}") from None


def invoker(functions: Path, ports: Ports) -> Invoke:
    """Return a caller of the functions in this process. Raises CatalogError."""
    loaded = load_function_servers(functions)
    return lambda function, event: handle(loaded[function].endpoint, event, None, lambda: ports)


def development_ports() -> Ports:
    """Return ports with the keys of DEVELOPMENT_ENVIRONMENT in memory."""
    from mcp_roundtrip.state.epochs import LocalMacKey  # the stable events need no state
    from mcp_roundtrip.state.keys import LocalKey
    from mcp_roundtrip_testing.ports import make_codec

    mac_key = LocalMacKey(DEVELOPMENT_MAC_KEY_ID, development_secret())
    issuer = DEVELOPMENT_ENVIRONMENT["MCP_ISSUER"]
    codec = make_codec(LocalKey(development_key()), time.time, mac_key=mac_key, issuer=issuer)
    return replace(wiring.make_ports(load_settings(DEVELOPMENT_ENVIRONMENT)), state_codec=lambda: codec)
