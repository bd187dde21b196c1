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
from typing import Final

from mcp_roundtrip_tools.console.console import Console
from mcp_roundtrip_tools.console.guard import redirect_to_console
from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.api_gateway.gateway import INTEGRATION_TIMEOUT_S, MAX_BODY, Gateway
from mcp_roundtrip_tools.run.app import LocalApp, Log
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.execution.debugged_runtime import NO_LIMIT_S
from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer, listen_near
from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from mcp_roundtrip_tools.run.observation.changed_questions import note_changed_questions
from mcp_roundtrip_tools.run.observation.recorder import Listener, RunRecorder
from mcp_roundtrip_tools.run.observation.records import current_cause
from mcp_roundtrip_tools.run.options import EmulatedServices, Options, WebServers
from mcp_roundtrip_tools.run.project import call_periodically
from mcp_roundtrip_tools.run.services.aws_endpoint import (
    AwsEndpoint,
    AwsService,
    Credentials,
    ObservedServices,
    Respond,
)
from mcp_roundtrip_tools.run.services.emulator import MAX_BODY as MAX_STORAGE
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.kms import MAX_BODY as MAX_KMS
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms import respond as respond_kms
from mcp_roundtrip_tools.run.services.lambda_api import MAX_PAYLOAD, LambdaApi
from mcp_roundtrip_tools.run.services.logs import MAX_BODY as MAX_LOG_EVENTS
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from mcp_roundtrip_tools.run.services.sqs import MAX_BODY as MAX_MESSAGE
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.run.terminal.plain_lines import PlainLines
from mcp_roundtrip_tools.run.timers import RealTimers


def listen_for_sdks(
    stack: ExitStack, app: Callable[[], LocalApp], recorder: RunRecorder, options: Options
) -> EmulatedServices:
    """Return the services of a run; the stack closes them. The variables can name the access key.

    Containers reach the services at `container_host`, a name that no web page knows, with any access key.
    """
    credentials = Credentials.from_variables(options.variables) or Credentials.random()
    observed = ObservedServices(
        credentials, recorder, lambda suffix: app().invocation_of(suffix), lambda key: app().key_name(key)
    )
    kms, emulator = FakeKms(), Emulator(recorder.note)
    stack.callback(emulator.close)
    writes = JournalWrites(lambda: current_cause().caller)
    # Looked up for each request: benchmarks replace this method while it serves.
    storage = AwsService(writes.watch(lambda request: emulator.respond(request)), MAX_STORAGE)
    keys = AwsService(partial(respond_kms, kms), MAX_KMS)
    invocations, others = _services_of_functions(stack, app, observed, options.retry_delay_scale)
    aws = AwsEndpoint({"dynamodb": storage, "s3": storage, "kms": keys, **invocations}, others)
    server = HttpServer(observed.guard(aws.respond), max_body=aws.max_body)
    stack.callback(server.close)
    endpoints = {"AWS_ENDPOINT_URL": server.url}
    if (container_host := options.container_host) is None:
        return EmulatedServices(credentials, kms, emulator, writes, endpoints, (server,))
    for_containers = HttpServer(aws.respond, max_body=aws.max_body, names=[container_host])
    stack.callback(for_containers.close)
    container_url = f"http://{container_host}:{for_containers.port}"
    servers = (server, for_containers)
    return EmulatedServices(credentials, kms, emulator, writes, endpoints, servers, container_url)


def _services_of_functions(
    stack: ExitStack, app: Callable[[], LocalApp], observed: ObservedServices, retry_delay_scale: float
) -> tuple[dict[str, AwsService], Respond]:
    """Return Lambda, SQS and CloudWatch Logs by their names, and what answers for all other services."""
    timers, note = RealTimers(), observed.recorder.note
    queues = Queues(lambda: app().queues(), lambda *call: app().run(*call), note, timers)
    later = AsyncInvocations(
        lambda: app().functions(),
        lambda *call: app().run(*call),
        queues.send,
        timers,
        note,
        retry_delay_scale,
    )
    lambda_api = LambdaApi(
        lambda: app().functions(),
        lambda *call: app().run_nested(*call),
        later.accept,
        note,
        left_out=lambda: app().left_out(),
    )
    stack.callback(timers.close)
    # Of log groups, only that of audit records is written by functions. The terminal shows its lines.
    logs = FakeLogs(lambda group: True, lambda group, line: note(f"[{group}] {line}"))
    services = {
        "lambda": AwsService(lambda_api.respond, MAX_PAYLOAD),
        "sqs": AwsService(queues.respond, MAX_MESSAGE),
        "logs": AwsService(logs.respond, MAX_LOG_EVENTS),
    }
    return services, lambda_api.respond  # it names the services that are not emulated


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
