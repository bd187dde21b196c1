"""Results that servers have given are given again to the official clients, and schemas to Ajv.

The clients are real. What they are connected to answers each request with a result that was recorded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION

PROGRAM: Final = Path(__file__).with_suffix(".mjs")

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""Method -> the member of its result that holds definitions."""

_LAST_RESULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "tools/call": {"content": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
}
METHODS: Final = frozenset({*LISTS, *_LAST_RESULTS, "completion/complete"})
"""The methods whose results the clients read."""

_COMPLETE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_CAPABILITIES: Final[Mapping[str, Any]] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
_PAGE: Final = "a page"
_PARAMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "x://a"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    },
}


@dataclass(frozen=True)
class Exchange:
    """A result in a version of the protocol, and where it was recorded.

    `tool` is the definition of the tool that was called, if the client had listed it.
    """

    where: str
    version: str
    method: str
    result: Mapping[str, Any]
    tool: Mapping[str, Any] | None = None


def session(exchanges: Iterable[Exchange], *, legacy: bool) -> dict[str, Any]:
    """Return what a client of this era is given: results for its opening, and steps with a result each.

    Each call is of a tool of its own, so that the client reads its result by the definition of that time. One
    step lists these tools, after the steps that list definitions.
    """
    chosen = [each for each in exchanges if (each.version != PROTOCOL_VERSION) == legacy]
    steps = [_step(number, each) for number, each in enumerate(chosen)]
    lists = [step for step in steps if "member" in step]
    others = [step for step in steps if "member" not in step]
    tools = {**_COMPLETE, "tools": [step["tool"] for step in others if "tool" in step]}
    listed = {"where": "the tools", "method": "tools/list", "params": {}, "member": "tools", "result": tools}
    return {"opening": _opening(legacy=legacy), "steps": [*lists, listed, *others]}


def _opening(*, legacy: bool) -> dict[str, Any]:
    known = {"capabilities": _CAPABILITIES}
    if legacy:
        info = {"name": "replay", "version": "1"}
        return {"initialize": {**known, "protocolVersion": LEGACY_VERSION, "serverInfo": info}}
    return {"server/discover": {**known, **_COMPLETE, "supportedVersions": [PROTOCOL_VERSION]}}


def _step(number: int, exchange: Exchange) -> dict[str, Any]:
    method = exchange.method
    step = {"where": exchange.where, "method": method, "result": exchange.result}
    if method == "tools/call":
        name = {"name": f"tool-{number}"}
        step |= {"params": name, "tool": {"inputSchema": {"type": "object"}, **(exchange.tool or {}), **name}}
    elif method in LISTS:
        step |= {"params": {"cursor": _PAGE}, "member": LISTS[method]}
    else:
        step["params"] = _PARAMS[method]
    # A client that has answered the questions of a result retries. A tool error needs no structured content.
    return {**step, "last": {**_COMPLETE, **_LAST_RESULTS.get(method, {}), "isError": True}}


# The Python client


async def refusals_of_python(given: Mapping[str, Any], *, legacy: bool) -> list[tuple[str, str]]:
    """Return where the Python client raises an error or changes a definition, and why."""
    current: Mapping[str, Any] = {}

    def reply(method: str, params: Mapping[str, Any]) -> Any:
        if method in given["opening"]:
            return given["opening"][method]
        return current["last" if params.keys() & {"inputResponses", "requestState"} else "result"]

    client = Client(
        _connected(reply),
        mode="legacy" if legacy else "auto",
        elicitation_callback=_cancel,
        sampling_callback=_sample,
        sampling_capabilities=types.SamplingCapability.model_validate({"tools": {}, "context": {}}),
        list_roots_callback=_list_roots,
    )
    found = []
    async with client:
        for step in given["steps"]:
            current = step
            try:
                await _SEND[step["method"]](client, step)
            except Exception as error:  # a client may raise anything
                found.append((step["where"], repr(error)))
    return found


@asynccontextmanager
async def _connected(reply: Callable[[str, Mapping[str, Any]], Any]) -> AsyncIterator[Any]:
    async def serve() -> None:
        async for received in receive:
            assert isinstance(received, SessionMessage)
            request = received.message
            if isinstance(request, types.JSONRPCRequest):
                result = reply(request.method, request.params or {})
                response = types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
                await send.send(SessionMessage(response))

    async with (
        create_client_server_memory_streams() as (client, (receive, send)),
        anyio.create_task_group() as group,
    ):
        group.start_soon(serve)
        yield client
        group.cancel_scope.cancel()


async def _cancel(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="cancel")


async def _sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="")
    return types.CreateMessageResult(role="user", model="m", content=text)


async def _list_roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])


async def _list(client: Client, step: Mapping[str, Any]) -> None:
    list_page = {
        "tools/list": client.list_tools,
        "prompts/list": client.list_prompts,
        "resources/list": client.list_resources,
        "resources/templates/list": client.list_resource_templates,
    }[step["method"]]
    read = await list_page(**step["params"])
    definitions = read.model_dump(mode="json", by_alias=True, exclude_unset=True)[step["member"]]
    assert definitions == step["result"][step["member"]], definitions


_SEND: Final[Mapping[str, Callable[[Client, Any], Any]]] = {
    **dict.fromkeys(LISTS, _list),
    "tools/call": lambda client, step: client.call_tool(step["params"]["name"], {}),
    "prompts/get": lambda client, step: client.get_prompt(**step["params"]),
    "resources/read": lambda client, step: client.read_resource(**step["params"]),
    "completion/complete": lambda client, step: client.complete(
        types.PromptReference.model_validate(step["params"]["ref"]), step["params"]["argument"]
    ),
}
