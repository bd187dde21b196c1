"""Serve a template: start the HTTP API and the services that functions call, all on 127.0.0.1."""

from __future__ import annotations

import atexit
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.api_gateway.gateway import INTEGRATION_TIMEOUT_S
from mcp_roundtrip_tools.run.app import LocalApp, Log
from mcp_roundtrip_tools.run.execution.debugged_runtime import NO_LIMIT_S
from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES
from mcp_roundtrip_tools.run.issuer.users import User
from mcp_roundtrip_tools.run.observation.changed_questions import note_changed_questions
from mcp_roundtrip_tools.run.observation.recorder import Listener, RunRecorder
from mcp_roundtrip_tools.run.options import Options
from mcp_roundtrip_tools.run.sdk_servers import listen_for_sdks
from mcp_roundtrip_tools.run.servers import WebServers
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.run.source_watcher import call_periodically
from mcp_roundtrip_tools.run.terminal.plain_lines import PlainLines
from mcp_roundtrip_tools.run.web_servers import listen_for_clients

Listen = Callable[[ExitStack, Callable[[], LocalApp], RunRecorder, JournalWrites], WebServers]


def serve(
    template: Path,
    *,
    port: int = 0,
    fresh: bool = False,
    parameters: Mapping[str, str] | None = None,
    python: str = sys.executable,
    log: Log | None = print,
    listeners: Sequence[Listener] = (),
    watch_interval_s: float = 1.0,
    integration_timeout_s: float = INTEGRATION_TIMEOUT_S,
    variables: Mapping[str, str] | None = None,
    debug: bool = False,
    retry_delay_scale: float = 1.0,
    users: Sequence[User] | None = None,
    console: bool = True,
    checks: bool = False,
    container_host: str | None = None,
) -> AbstractContextManager[LocalApp]:
    """Run a SAM template until the block ends.

    `port` 0 selects a free port; with another one, the two after it are for the issuer and the console, or
    free ones if they are in use. `log` receives the lines that functions print, a line for each request, and
    errors. With `users`, an issuer for them runs (`LocalApp.issuer`), and AuthMode is bearer. With `console`,
    the console is served (`LocalApp.console_url`). The others are those of `Options`. Raises TemplateError,
    and OSError if `port` is in use.
    """
    options = Options(
        parameters or {},
        variables or {},
        python,
        watch_interval_s,
        retry_delay_scale,
        container_host,
        fresh=fresh,
        debug=debug,
        checks=checks,
    )
    timeout_s = NO_LIMIT_S if debug else integration_timeout_s
    listen = partial(listen_for_clients, port=port, timeout_s=timeout_s, users=users, with_console=console)
    plain = () if log is None else (PlainLines(log),)
    return start_functions(template, options, (*plain, *listeners), listen)


@contextmanager
def start_functions(
    template: Path, options: Options, listeners: Sequence[Listener], listen: Listen
) -> Iterator[LocalApp]:
    """Run the functions of a SAM template until the block ends, with the services that they call.

    `listen` returns the servers for clients, to which it gets the application when it runs. Raises
    TemplateError, and what `listen` raises.
    """
    running: list[LocalApp] = []  # the servers need the application, and it needs their URLs
    recorder = RunRecorder(*listeners, lambda event: note_changed_questions(event, recorder))
    with ExitStack() as stack:
        names = LOCAL_NAMES if options.container_host is None else (*LOCAL_NAMES, options.container_host)
        variables = {**stack.enter_context(serve_stand_ins(template, names)), **options.variables}
        options = replace(options, variables=variables)
        services = listen_for_sdks(stack, lambda: running[0], recorder, options)
        web = listen(stack, lambda: running[0], recorder, services.writes)
        if web.issuer is not None:
            parameters = {"AuthMode": "bearer", **options.parameters, "TokenIssuer": web.issuer.url}
            options = replace(options, parameters=parameters)
        app = LocalApp(template.resolve(), web, services, recorder, options)
        running.append(app)
        stack.callback(app.close)
        atexit.register(app.close)  # if the block is never left
        stack.callback(atexit.unregister, app.close)
        for server in (*services.servers, *web.servers):
            server.start()
        if 0 < options.watch_interval_s < math.inf:
            stack.enter_context(call_periodically(app.current, options.watch_interval_s))
        yield app
