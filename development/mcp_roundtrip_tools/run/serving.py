"""Serve a template: start the HTTP API and the services that functions call, all on 127.0.0.1."""

from __future__ import annotations

import atexit
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mcp_roundtrip_tools.run.api_gateway.gateway import INTEGRATION_TIMEOUT_S
from mcp_roundtrip_tools.run.app import LocalApp, Log
from mcp_roundtrip_tools.run.emulated_services import EmulatedServices
from mcp_roundtrip_tools.run.execution.debugger import TIMEOUT_S
from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from mcp_roundtrip_tools.run.issuer.users import User
from mcp_roundtrip_tools.run.observation.changed_questions import note_changed_questions
from mcp_roundtrip_tools.run.observation.recorder import Listener, RunRecorder
from mcp_roundtrip_tools.run.options import Options
from mcp_roundtrip_tools.run.sdk_servers import listen_for_sdks
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.run.source_watcher import call_periodically
from mcp_roundtrip_tools.run.terminal.plain_lines import PlainLines
from mcp_roundtrip_tools.run.web_servers import ISSUER_PORT, listen_for_clients


@contextmanager
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
) -> Iterator[LocalApp]:
    """Run a SAM template until the block ends.

    `port` 0 selects a free port. With `fresh`, each invocation gets a new process. `parameters` are those of
    the template. `python` is the interpreter of the functions; it needs awslambdaric. `log` receives the
    lines that functions print, a line for each request, and errors. Sources are checked before invocations,
    at most once in `watch_interval_s`, and in the background unless that is 0. `variables` are added to the
    environment of every function; they override those of `Metadata.LocalRun` in the template (see
    `services.stand_ins`). With `debug`, all functions run in one process that has the terminal, one event at
    a time and without timeouts. `retry_delay_scale` multiplies the delays after which Lambda repeats a failed
    asynchronous invocation. With `users`, an issuer for them runs (`LocalApp.issuer`) at the port after
    `port`, and AuthMode is bearer. With `console`, the second port after `port` serves the console
    (`LocalApp.console_url`). With `checks`, functions are imported when their sources are saved, and callers
    of one that cannot run get the reason. Containers that know the host name `container_host` reach the
    emulated services and the stand-ins by it, if their connections are led to this computer. For ports that
    are in use, free ones are selected, but not for `port`. Raises TemplateError, and OSError if `port` is in
    use.
    """
    running: list[LocalApp] = []  # the servers need the application, and it needs their URLs
    observers = [*(() if log is None else (PlainLines(log),)), *listeners]
    recorder = RunRecorder(*observers, lambda event: note_changed_questions(event, recorder))
    with ExitStack() as stack:
        names = LOCAL_NAMES if container_host is None else (*LOCAL_NAMES, container_host)
        given = {**stack.enter_context(serve_stand_ins(template, names)), **(variables or {})}
        services = listen_for_sdks(
            stack, lambda: running[0], recorder, given, retry_delay_scale, container_host
        )
        web = listen_for_clients(
            stack,
            lambda: running[0],
            recorder,
            port=port,
            timeout_s=TIMEOUT_S if debug else integration_timeout_s,
            console_writes=services.writes if console else None,
        )
        issuer = None
        if users is not None:
            issuer_port = port and port + ISSUER_PORT
            issuer = stack.enter_context(serve_issuer(users, lambda: running[0].audience(), port=issuer_port))
        options = Options(
            parameters=_with_issuer(parameters or {}, issuer),
            fresh=fresh,
            python=python,
            watch_interval_s=watch_interval_s,
            variables=given,
            debug=debug,
            checks=checks,
            issuer=issuer,
            console_url=web.console_url,
        )
        app = LocalApp(template.resolve(), web.http_api.url, services, recorder, options)
        running.append(app)
        _start_services(stack, app, services)
        web.start()
        if watch_interval_s > 0:
            stack.enter_context(call_periodically(app.current, watch_interval_s))
        yield app


@contextmanager
def start_functions(
    template: Path,
    api_url: str,
    *,
    parameters: Mapping[str, str],
    variables: Mapping[str, str],
    listeners: Sequence[Listener] = (),
) -> Iterator[LocalApp]:
    """Run the functions of a SAM template until the block ends, with the services that they call.

    Unlike `serve`, this does not serve the HTTP API: `api_url` is the URL that functions have of it. The KMS
    keys are the same in each run (`services.development_keys`), and changed sources are not read again.
    Raises TemplateError.
    """
    running: list[LocalApp] = []
    recorder = RunRecorder(*listeners)
    with ExitStack() as stack:
        given = {**stack.enter_context(serve_stand_ins(template)), **variables}
        services = listen_for_sdks(stack, lambda: running[0], recorder, given, retry_delay_scale=1.0)
        options = Options(
            parameters=parameters,
            fresh=False,
            python=sys.executable,
            watch_interval_s=math.inf,
            variables=given,
            debug=False,
            development_keys=True,
        )
        app = LocalApp(template.resolve(), api_url, services, recorder, options)
        running.append(app)
        _start_services(stack, app, services)
        yield app


def _start_services(stack: ExitStack, app: LocalApp, services: EmulatedServices) -> None:
    """Start the services that the functions of an application call. The stack closes the application."""
    stack.callback(app.close)
    atexit.register(app.close)  # if the block is never left
    stack.callback(atexit.unregister, app.close)
    for server in services.servers:
        server.start()


def _with_issuer(given: Mapping[str, str], issuer: LocalIssuer | None) -> Mapping[str, str]:
    return given if issuer is None else {"AuthMode": "bearer", **given, "TokenIssuer": issuer.url}
