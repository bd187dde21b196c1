"""What clients of the `initialize` era are served: no sessions, and nothing remembered between requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.protocol.meta import unknown_method
from mcp_roundtrip.protocol.methods import (
    INITIALIZE,
    LEGACY_VERSION,
    LEGACY_VERSIONS,
    PING,
    TOOLS_CALL,
    TOOLS_LIST,
)
from mcp_roundtrip.server.calls import Reply
from mcp_roundtrip.server.dispatch import Defined, Exchange, Handler, ServerFacts, listed
from mcp_roundtrip.server.registry import TaskSupport


@dataclass(frozen=True, slots=True)
class LegacyServer:
    """The methods of a server in 2025-11-25 and 2025-06-18.

    `tools` gives the Tool object and the task support of each tool, `call` is the handler of `tools/call`,
    `tasks` are those of the methods for tasks: none, if no call can become a task.
    """

    facts: ServerFacts
    tools: Callable[[], Iterable[tuple[Mapping[str, Any], TaskSupport | None]]]
    call: Handler
    tasks: Mapping[str, Handler]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {
            INITIALIZE: self._initialize,
            PING: lambda exchange: Reply({}),
            TOOLS_LIST: self._list,
            TOOLS_CALL: self.call,
            **{method: _since_tasks(handler) for method, handler in self.tasks.items()},
        }

    def _initialize(self, exchange: Exchange) -> Reply:
        requested = exchange.route.params.get("protocolVersion")
        version = requested if requested in LEGACY_VERSIONS else LEGACY_VERSION
        told = self.facts.instructions
        instructions = {} if told is None else {"instructions": told}
        return Reply(
            {
                "protocolVersion": version,
                "capabilities": self._capabilities(version),
                "serverInfo": self.facts.server_info,
                **instructions,
            }
        )

    def _capabilities(self, version: str) -> dict[str, Any]:
        """No `logging`: nobody would remember the level that a client sets."""
        tasks: dict[str, Any] = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        return {"tools": {}, **(tasks if self.tasks and has_tasks(version) else {})}

    def _list(self, exchange: Exchange) -> Reply:
        knows_tasks = has_tasks(exchange.route.meta.protocol_version)
        tools = {
            definition["name"]: Defined(_tool(definition, support if knows_tasks else None))
            for definition, support in self.tools()
        }
        page = listed(self.facts, "tools", tools, exchange).result
        return Reply({name: page[name] for name in ("tools", "nextCursor") if name in page})


def has_tasks(version: str) -> bool:
    """Whether that version of the protocol has tasks."""
    return version == LEGACY_VERSION


def _since_tasks(handler: Handler) -> Handler:
    def handled(exchange: Exchange) -> Reply | HttpResponse:
        if not has_tasks(exchange.route.meta.protocol_version):
            raise unknown_method(exchange.route.method)
        return handler(exchange)

    return handled


def _tool(definition: Mapping[str, Any], support: TaskSupport | None) -> dict[str, Any]:
    """A Tool. Structured content is an object there, so an output schema for anything else has no place."""
    tool = dict(definition)
    if tool.get("outputSchema", {}).get("type") != "object":
        tool.pop("outputSchema", None)
    return tool if support is None else {**tool, "execution": {"taskSupport": support}}


def call_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A CallToolResult. Structured content that is no object is left out: it stands in `content` as text."""
    if isinstance(result.get("structuredContent", {}), dict):
        return dict(result)
    return {name: member for name, member in result.items() if name != "structuredContent"}
