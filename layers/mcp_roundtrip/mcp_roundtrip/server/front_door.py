"""The one public endpoint in front of many tool functions.

It answers discovery and the lists from a catalog that a build step writes, and passes calls on, the event
unchanged, to the function that owns the tool. It runs no tool code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mcp_roundtrip import wiring
from mcp_roundtrip.canonical import parse
from mcp_roundtrip.errors import OwnerFailed
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.methods import DISCOVER, TOOLS_CALL, TOOLS_LIST
from mcp_roundtrip.server.app import LegacyTasks, known_dialect, server_info
from mcp_roundtrip.server.calls import Reply, internal_error
from mcp_roundtrip.server.dispatch import Endpoint, Exchange, Handler, capabilities, known_name, list_tools
from mcp_roundtrip.server.forwarded import FORWARD_MS, Forwarded, definition_digest
from mcp_roundtrip.server.handler import handle
from mcp_roundtrip.server.ports import Ports
from mcp_roundtrip.server.registry import TaskSupport


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool in the catalog: who owns it, its Tool object, and whether its calls may or must become tasks."""

    owner: str
    definition: Mapping[str, Any]
    task: TaskSupport | None = None


def read_catalog(text: str) -> dict[str, Listed]:
    """The catalog by tool name, in its order. Raises ValueError when it is not one."""
    rows = parse(text)["tools"]
    return {
        row["definition"]["name"]: Listed(row["owner"], row["definition"], row.get("task")) for row in rows
    }


class FrontDoor:
    """An MCP endpoint over a catalog file; `MCP_OWNERS` says which function each owner is.

    The keywords are those of `Server`. With `legacy_tasks`, the owners' servers need it, too.
    """

    def __init__(
        self,
        name: str,
        catalog: Path,
        *,
        version: str = "1.0.0",
        title: str | None = None,
        instructions: str | None = None,
        legacy_tasks: LegacyTasks | None = None,
        ports: Callable[[], Ports] = wiring.ports,
    ) -> None:
        self.info: Mapping[str, Any] = server_info(name, version, title)
        self.catalog = read_catalog(catalog.read_text(encoding="utf-8"))
        self._instructions = instructions
        self._legacy_tasks = known_dialect(legacy_tasks)
        self._ports = ports

    @cached_property
    def endpoint(self) -> Endpoint:
        """The front door's methods."""
        handlers: dict[str, Handler] = {
            DISCOVER: self._discover,
            TOOLS_LIST: self._list,
            TOOLS_CALL: self._forward,
        }
        if self._has_tasks:
            from mcp_roundtrip.server.tasks import TaskMethods  # front doors without tasks do without it

            handlers |= TaskMethods(self.info).handlers()
        return Endpoint(handlers, {} if self._legacy_tasks is None else self._legacy_handlers())

    def _legacy_handlers(self) -> Mapping[str, Handler]:
        from mcp_roundtrip.server.legacy import LegacyServer  # off by default
        from mcp_roundtrip.server.sep_2322 import task_methods

        return LegacyServer(
            self.info,
            self._instructions,
            lambda: [(listed.definition, listed.task) for listed in self.catalog.values()],
            self._forward,
            task_methods() if self._has_tasks else {},
        ).handlers()

    @property
    def _has_tasks(self) -> bool:
        return any(listed.task for listed in self.catalog.values())

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """The Lambda handler: `handler = front_door.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    def _discover(self, exchange: Exchange) -> Reply:
        return Reply(results.discover(self.info, capabilities(self._has_tasks), self._instructions))

    def _list(self, exchange: Exchange) -> Reply:
        return list_tools(self.info, [listed.definition for listed in self.catalog.values()], exchange)

    def _forward(self, exchange: Exchange) -> HttpResponse:
        listed = self.catalog[known_name(exchange.route, self.catalog)]
        ports, invocation = exchange.ports, exchange.invocation
        remaining_ms = min(invocation.deadline_ms - ports.clock_ms(), FORWARD_MS)
        deadline_ms = int(ports.clock() * 1000 + remaining_ms)
        definition = definition_digest(listed.definition)
        custom = Forwarded(deadline_ms, definition, invocation.correlation_id, self.info).custom()
        try:
            raw = ports.forward(listed.owner, invocation.event or {}, custom)
        except OwnerFailed as error:
            ports.observer.failure("owner_failed", error, owner=listed.owner)
            raise internal_error(invocation.correlation_id) from None
        ports.observer.record("forwarded", tool=listed.definition["name"], owner=listed.owner)
        return HttpResponse(200, raw=raw)
