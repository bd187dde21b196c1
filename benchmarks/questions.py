"""Time a question by each channel: `questions.py FLOWS PIPE`.

A flow is a tool call that asks one question, the answer, and the result. The server is warm, the user answers
at once, and the key and the task table are in memory. Each request is timed from the API Gateway event to the
response.
"""

import json
import marshal
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Context, Server
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, UI_EXTENSION
from mcp_roundtrip.server.options import ANSWER_TOOL, META_QUESTIONS
from mcp_roundtrip.state.jws import LocalKey
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.ports import make_codec
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore
from mcp_roundtrip_testing.workers import NEVER
from task_server import NullDispatcher

WARM_UP_FLOWS = 20

COUNT = 3
ANSWERS = {"count": {"action": "accept", "content": {"value": COUNT}}}
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
VIEWS: Mapping[str, Any] = {"extensions": {UI_EXTENSION: {}}}
CALLER = {"jwt": {"claims": {"iss": "https://id.example", "sub": "bench"}}}
LINK = re.compile(r"/questions\?(token=[\w-]+)")
FIELD = re.compile(r'<input (?:type="hidden" )?[^>]*?name="([^"]+)"(?: value="([^"]*)")?')

codec = make_codec(LocalKey.generate(), time.time)
# It counts its calls, and each of them would be one DynamoDB request.
store = CrashingStore(MemoryStore(), NEVER, is_done=False)
tasks = Tasks(store, NullDispatcher(), clock_ms=lambda: int(time.time() * 1000))


def deploy(*, has_table: bool) -> Server:
    """Return a server with a tool that asks."""
    variables = {**os.environ, "MCP_AUTH_MODE": "jwt"}
    own = replace(wiring.make_ports(load_settings(variables)), state_codec=lambda: codec, tasks=lambda: tasks)
    ports = replace(own, settings=replace(own.settings, task_table="tasks" if has_table else None))
    server = Server("bench", ports=lambda: ports)

    @server.tool
    def order(ctx: Context, item: int) -> int:
        """Ask one question."""
        return ctx.elicit("count", f"How many of item {item}?", int)

    return server


class Flow:
    """One flow. `ms` are the times of its requests, `received` is the size of all responses in bytes."""

    item = 0

    def __init__(self, server: Server, capabilities: Mapping[str, Any]) -> None:
        Flow.item += 1
        self.server, self.arguments, self.ms, self.received = server, {"item": Flow.item}, list[float](), 0
        self.meta = {**payloads.META, META_CLIENT_CAPABILITIES: capabilities}

    def call(self, **params: Any) -> dict[str, Any]:
        """Call the tool."""
        return self.call_tool("order", self.arguments, **params)

    def call_tool(self, name: str, arguments: Mapping[str, Any], **params: Any) -> dict[str, Any]:
        event = payloads.tool_call(name, arguments, **{"_meta": self.meta, **params})
        result: dict[str, Any] = json.loads(self.send(event)["body"])["result"]
        return result

    def send(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send a request of the caller, and time it."""
        event["requestContext"]["authorizer"] = CALLER
        started = time.perf_counter()
        response: dict[str, Any] = self.server.lambda_handler(event, LambdaContext())
        self.ms.append((time.perf_counter() - started) * 1000)
        self.received += len(response["body"])
        return response


def by_client(flow: Flow) -> dict[str, Any]:
    """Ask by the protocol's own input requests."""
    first = flow.call()
    return flow.call(inputResponses=ANSWERS, requestState=first["requestState"])


def by_app(flow: Flow) -> dict[str, Any]:
    """Ask in a view, which answers through the answer tool."""
    state = flow.call()["_meta"][META_QUESTIONS]["state"]
    answer = {"tool": "order", "arguments": flow.arguments, "state": state, "answers": ANSWERS}
    return flow.call_tool(ANSWER_TOOL, answer)


def by_page(flow: Flow) -> dict[str, Any]:
    """Ask on the question page. The user opens the link and sends the form; the model calls again."""
    [link] = LINK.findall(flow.call()["content"][0]["text"])
    page = flow.send(payloads.page_request("GET", link))
    form = {name: value or str(COUNT) for name, value in FIELD.findall(page["body"])}
    posted = flow.send(payloads.page_request("POST", body=urlencode(form | {"action": "accept"})))
    assert posted["statusCode"] == 303, posted
    flow.send(payloads.page_request("GET", link))  # the redirect
    return flow.call()


with_table, without_table = deploy(has_table=True), deploy(has_table=False)

CHANNELS: Mapping[str, tuple[Callable[[Flow], dict[str, Any]], Server, Mapping[str, Any]]] = {
    "client": (by_client, with_table, FORMS),
    "app": (by_app, without_table, VIEWS),
    "app_parked": (by_app, with_table, VIEWS),
    "page": (by_page, with_table, {}),
}


def main(flows: int, pipe: int) -> None:
    samples: dict[str, list[dict[str, Any]]] = {channel: [] for channel in CHANNELS}
    for number in range(WARM_UP_FLOWS + flows):
        for channel in CHANNELS:
            sample = run(channel)
            if number >= WARM_UP_FLOWS:
                samples[channel].append(sample)
    figures = {
        channel: {name: median(sample[name] for sample in of_channel) for name in of_channel[0]}
        for channel, of_channel in samples.items()
    }
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


def run(channel: str) -> dict[str, Any]:
    """Run one flow, and return its figures."""
    play, server, capabilities = CHANNELS[channel]
    store.store, store.calls = MemoryStore(), 0  # a query of this store takes longer for more items
    flow = Flow(server, capabilities)
    result = play(flow)
    assert result["content"][0]["text"] == str(COUNT), result
    return {
        "first_ms": flow.ms[0],
        "flow_ms": sum(flow.ms),
        "requests": len(flow.ms),
        "table_requests": store.calls,
        "kib": flow.received / 1024,
    }


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
