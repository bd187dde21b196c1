"""Execution environments in this process: of a server, or of a front door and the owners of its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.front_door import FrontDoor
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.invocation import Forwarded, Invocation
from mcp_roundtrip.server.tools import Tool, ToolMethods
from mcp_roundtrip_testing.loading import Source, load_server

# One callable of a union, not a union of callables: mypy checks a lambda against a single type only.
Application = Server | FrontDoor | Path | Callable[[], Server | FrontDoor]
"""A server or a front door, a function that makes one, or the path of a module that holds a server."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A server in a new environment, or a front door with its owners, each in a new environment."""

    entry: Server | FrontDoor
    owners: Mapping[str, Server]

    @classmethod
    def load(cls, application: Application, owners: Mapping[str, Source]) -> Environment:
        """Load the application and the owners of a front door."""
        made = application if isinstance(application, (Server, FrontDoor, Path)) else application()
        if isinstance(made, FrontDoor):
            return cls(made, {name: load_server(source) for name, source in owners.items()})
        server = load_server(made)
        return cls(server, {"": server})

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return {name: tool for server in self.owners.values() for name, tool in server.tools.items()}

    @property
    def tool_methods(self) -> ToolMethods:
        """What a worker needs to run the tasks of all tools."""
        first, *others = (server._tool_methods for server in self.owners.values())
        return ToolMethods(first.options, self.tools) if others else first

    def respond(self, request: HttpRequest, ports: Ports, remaining_ms: float) -> HttpResponse:
        """Respond to a request within this time."""
        if isinstance(self.entry, FrontDoor):
            ports = replace(ports, forward=self._forwarder(ports))
        # The front door passes its event to the owner unchanged. Here the request takes its place.
        invocation = Invocation("test", ports.clock_ms() + remaining_ms, event={"request": request})
        response = self.entry.endpoint.respond(request, ports, invocation)
        return response if response.raw is None else response.raw

    def _forwarder(self, ports: Ports) -> Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any]:
        def forward(
            owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
        ) -> HttpResponse:
            forwarded = Forwarded.read(SimpleNamespace(client_context=SimpleNamespace(custom=custom)))
            remaining_ms = (forwarded.deadline_ms or 0) - ports.clock() * 1000
            invocation = Invocation("test", ports.clock_ms() + remaining_ms, None, event, forwarded)
            return self.owners[owner].endpoint.respond(event["request"], ports, invocation)

        return forward
