"""The two ports of a run that a person knows: the HTTP API of the template, and the console.

The console has a port, and so an origin, of its own. Pages that the template serves, and their scripts, are
pages of another origin to it: the browser keeps them from its API, its storage and its window.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_tools.console.console import Console
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.console.redirect import redirect_to_console
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer, listen_near
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder

ISSUER_PORT: Final = 1
CONSOLE_PORT: Final = 2
"""Ports after that of the HTTP API. While another program uses one of them, a free port is selected."""


@dataclass(frozen=True, slots=True)
class WebServers:
    """The server of the HTTP API, and that of the console if it is served. They listen already."""

    http_api: HttpServer
    console: HttpServer | None

    @property
    def console_url(self) -> str | None:
        """The URL of the console, with a slash at the end."""
        return None if self.console is None else f"{self.console.url}/"

    def start(self) -> None:
        """Answer requests from now on."""
        for server in (self.http_api, self.console):
            if server is not None:
                server.start()


def listen_for_clients(
    stack: ExitStack,
    app: Callable[[], LocalApp],
    recorder: RunRecorder,
    *,
    port: int,
    timeout_s: float,
    console_writes: JournalWrites | None,
) -> WebServers:
    """Return the servers; the stack closes them. Raises OSError if `port` is in use.

    `console_writes` has the writes of tasks for the console; None serves no console.
    """
    gateway = Gateway(
        lambda: app().routes(),
        lambda *call: app().run(*call),
        recorder,
        cors=lambda: app().cors(),
        left_out=lambda: app().left_out(),
        timeout_s=timeout_s,
        folder=lambda: app().folder,
    )
    stack.callback(gateway.close)
    console_server: HttpServer | None = None

    def respond(request: Request) -> Response:
        to = (
            None
            if console_server is None
            else redirect_to_console(request, app().routes(), console_server.port)
        )
        return to or gateway.respond(request)

    http_api = HttpServer(respond, port=port, max_body=MAX_BODY)
    stack.callback(http_api.close)
    if console_writes is not None:
        console = Console(app, console_writes, recorder.note, gateway.respond, http_api.port)
        console_server = listen_near(console.respond, port and port + CONSOLE_PORT, MAX_BODY)
        stack.callback(console_server.close)
    return WebServers(http_api, console_server)
