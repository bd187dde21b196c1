"""Serve a template: start the HTTP API and the services that functions call, all on 127.0.0.1."""

import atexit
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

from mcp_roundtrip_tools.console.admission import redirect_to_console
from mcp_roundtrip_tools.console.console import Console
from mcp_roundtrip_tools.run.api_gateway.gateway import INTEGRATION_TIMEOUT_S, MAX_BODY, Gateway
from mcp_roundtrip_tools.run.api_gateway.routing import Cors
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations, RealTimers
from mcp_roundtrip_tools.run.execution.debugged_runtime import NO_LIMIT_S
from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES
from mcp_roundtrip_tools.run.http.messages import Request, Respond, Response
from mcp_roundtrip_tools.run.http.server import HttpServer, listen_near
from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from mcp_roundtrip_tools.run.observation.recorder import Listener
from mcp_roundtrip_tools.run.options import Addresses, Options
from mcp_roundtrip_tools.run.project import call_periodically
from mcp_roundtrip_tools.run.services.aws_endpoint import lead_to_services, record_calls
from mcp_roundtrip_tools.run.services.kms import respond as respond_kms
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.run.terminal.terminal import PlainLines

ISSUER_PORT: Final = 1
CONSOLE_PORT: Final = 2
"""Ports after that of the HTTP API. While another program uses one of them, a free port is selected."""

API_URL: Final = "http://127.0.0.1:3000"
"""The URL of an HTTP API that is not served: always the same, because a state is valid for one audience."""


@contextmanager
def serve(
    template: Path,
    *,
    port: int | None = 0,
    log: Callable[[str], None] | None = print,
    listeners: Sequence[Listener] = (),
    users: Sequence[User] | None = None,
    console: bool = True,
    **more: Any,
) -> Iterator[LocalApp]:
    """Run a SAM template until the block ends.

    `port` 0 selects a free port; with another one, the two after it are for the issuer and the console, or
    free ones if they are in use. With None, only the services that functions call are served. `log` receives
    the lines that functions print, a line for each request, and errors. With `users`, an issuer for them runs
    (`LocalApp.issuer`), and AuthMode is bearer. With `console`, the console is served
    (`LocalApp.console_url`). The others are members of `Options`. Raises TemplateError, and OSError if `port`
    is in use.
    """
    options = Options(**more)
    plain = () if log is None else (PlainLines(log),)
    with ExitStack() as stack:
        names = (*LOCAL_NAMES, *([options.container_host] if options.container_host else ()))
        given = {**stack.enter_context(serve_stand_ins(template, names)), **options.variables}
        copies = stack.enter_context(TemporaryDirectory(prefix="mcp-roundtrip-", ignore_cleanup_errors=True))
        options = replace(options, variables=given)
        app = LocalApp(template.resolve(), options, (*plain, *listeners), Path(copies))
        servers, addresses = _listen_for_sdks(stack, app, options)
        if port is not None:
            timeout_s = NO_LIMIT_S if options.debug else INTEGRATION_TIMEOUT_S
            clients, addresses = _listen_for_clients(
                stack, app, addresses, port=port, timeout_s=timeout_s, users=users, with_console=console
            )
            servers += clients
        app.open(addresses)
        stack.callback(app.close)
        atexit.register(app.close)  # if the block is never left
        stack.callback(atexit.unregister, app.close)
        for server in servers:
            server.start()
        if 0 < options.watch_interval_s < math.inf:
            stack.enter_context(call_periodically(app.current, options.watch_interval_s))
        yield app


def _listen_for_sdks(stack: ExitStack, app: LocalApp, options: Options) -> tuple[list[HttpServer], Addresses]:
    """Return the servers of the emulated services; the stack closes them.

    Containers reach the services at `container_host`, a name that no web page knows, with any access key.
    """
    timers, note = RealTimers(), app.recorder.note
    stack.callback(timers.close)
    stack.callback(app.emulator.close)

    def storage(request: Request) -> Response:
        return app.emulator.respond(request)  # looked up each time: benchmarks replace this method

    queues = Queues(lambda: app.current().queues, app.run, note, timers)
    later = AsyncInvocations(app.functions, app.run, queues.send, timers, note, options.retry_delay_scale)
    lambda_api = LambdaApi(app.functions, app.run_nested, later.accept, note, left_out=app.left_out)
    # Of log groups, only that of audit records is written by functions. The terminal shows its lines.
    logs = FakeLogs(lambda group: True, lambda group, line: note(f"[{group}] {line}"))
    services: dict[str, Respond] = {
        "dynamodb": storage,
        "s3": storage,
        "kms": partial(respond_kms, app.kms),
        "lambda": lambda_api.respond,
        "sqs": queues.respond,
        "logs": logs.respond,
    }
    aws = lead_to_services(services, lambda_api.respond)  # it names the services that are not emulated
    recorded = record_calls(aws, app.recorder, app.invocation_of, app.key_name)
    server = HttpServer(app.credentials.guard(recorded))
    stack.callback(server.close)
    if (host := options.container_host) is None:
        return [server], Addresses(API_URL, server.url)
    for_containers = HttpServer(aws, names=[host])
    stack.callback(for_containers.close)
    addresses = Addresses(API_URL, server.url, f"http://{host}:{for_containers.port}")
    return [server, for_containers], addresses


def _listen_for_clients(
    stack: ExitStack,
    app: LocalApp,
    addresses: Addresses,
    *,
    port: int,
    timeout_s: float,
    users: Sequence[User] | None,
    with_console: bool,
) -> tuple[list[HttpServer], Addresses]:
    """Return the servers; the stack closes them. An issuer runs already. OSError: `port` is in use."""
    gateway = Gateway(
        app.routes,
        app.run,
        app.recorder,
        cors=lambda: Cors.of(app.current().cors_configuration),
        left_out=app.left_out,
        timeout_s=timeout_s,
    )
    stack.callback(gateway.close)
    servers: list[HttpServer] = []

    def respond(request: Request) -> Response:
        to_console = redirect_to_console(request, app.routes(), servers[1].port) if with_console else None
        return to_console or gateway.respond(request)

    servers.append(HttpServer(respond, port=port, max_body=MAX_BODY))
    stack.callback(servers[0].close)
    addresses = replace(addresses, url=servers[0].url)
    if with_console:
        console = Console(app, gateway.respond, servers[0].port)
        servers.append(listen_near(console.respond, port and port + CONSOLE_PORT, MAX_BODY))
        stack.callback(servers[1].close)
        addresses = replace(addresses, console_url=f"{servers[1].url}/")
    if users is not None:
        issuer = stack.enter_context(serve_issuer(users, app.audience, port=port and port + ISSUER_PORT))
        addresses = replace(addresses, issuer=issuer)
    return servers, addresses


@contextmanager
def exit_on_signals(status: int | None = None) -> Iterator[None]:
    """Raise SystemExit in the block at Ctrl+C, or another signal; by default with 128 and its number.

    Further signals are ignored until the process ends, because they would interrupt its clean-up.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number if status is None else status)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:  # by nohup
        del before[signal.SIGHUP]
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is end:
                signal.signal(each, handler)
