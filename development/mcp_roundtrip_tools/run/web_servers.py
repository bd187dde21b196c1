"""The ports of a run that a person knows: the HTTP API of the template, the issuer, and the console.

The console has a port, and so an origin, of its own. Pages that the template serves, and their scripts, are
pages of another origin to it: the browser keeps them from its API, its storage and its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from mcp_roundtrip_tools.console.console import Console
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.console.redirect import redirect_to_console
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer, listen_near
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from mcp_roundtrip_tools.run.issuer.users import User
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.servers import WebServers

ISSUER_PORT: Final = 1
CONSOLE_PORT: Final = 2
"""Ports after that of the HTTP API. While another program uses one of them, a free port is selected."""


def listen_for_clients(
    stack: ExitStack,
    app: Callable[[], LocalApp],
    recorder: RunRecorder,
    writes: JournalWrites,
    *,
    port: int,
    timeout_s: float,
    users: Sequence[User] | None,
    with_console: bool,
) -> WebServers:
    """Return the servers; the stack closes them. Raises OSError if `port` is in use.

    With `users`, an issuer for them runs already. `writes` has the writes of tasks for the console.
    """
    gateway = _gateway(app, recorder, timeout_s)
    stack.callback(gateway.close)
    console_server: HttpServer | None = None

    def respond(request: Request) -> Response:
        if console_server is None:
            return gateway.respond(request)
        to_console = redirect_to_console(request, app().routes(), console_server.port)
        return to_console or gateway.respond(request)

    http_api = HttpServer(respond, port=port, max_body=MAX_BODY)
    stack.callback(http_api.close)
    console_url = issuer = None
    if with_console:
        console = Console(app, writes, recorder.note, gateway.respond, http_api.port)
        console_server = listen_near(console.respond, port and port + CONSOLE_PORT, MAX_BODY)
        stack.callback(console_server.close)
        console_url = f"{console_server.url}/"
    if users is not None:
        issuer_port = port and port + ISSUER_PORT
        issuer = stack.enter_context(serve_issuer(users, lambda: app().audience(), port=issuer_port))
    servers = (http_api,) if console_server is None else (http_api, console_server)
    return WebServers(http_api.url, servers, console_url, issuer)


def _gateway(app: Callable[[], LocalApp], recorder: RunRecorder, timeout_s: float) -> Gateway:
    return Gateway(
        lambda: app().routes(),
        lambda *call: app().run(*call),
        recorder,
        cors=lambda: app().cors(),
        left_out=lambda: app().left_out(),
        timeout_s=timeout_s,
        folder=lambda: app().folder,
    )
