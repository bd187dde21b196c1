"""Serve a template: start the HTTP API and the services that functions call, all on 127.0.0.1."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mcp_roundtrip_local.api_gateway.gateway import INTEGRATION_TIMEOUT_S, MAX_BODY, Gateway
from mcp_roundtrip_local.app import LocalApp, Log
from mcp_roundtrip_local.console.console import Console
from mcp_roundtrip_local.console.journal_writes import JournalWrites
from mcp_roundtrip_local.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_local.execution.debugger import TIMEOUT_S
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.issuer.issuer import LocalIssuer
from mcp_roundtrip_local.issuer.server import serve_issuer
from mcp_roundtrip_local.issuer.users import User
from mcp_roundtrip_local.observation.causes import current_cause
from mcp_roundtrip_local.observation.recorder import Listener, RunRecorder
from mcp_roundtrip_local.options import Options
from mcp_roundtrip_local.services.credentials import Credentials, Respond
from mcp_roundtrip_local.services.emulator import Emulator
from mcp_roundtrip_local.services.emulator import serve as serve_storage
from mcp_roundtrip_local.services.kms import FakeKms
from mcp_roundtrip_local.services.kms_api import serve as serve_kms
from mcp_roundtrip_local.services.lambda_api import MAX_PAYLOAD, LambdaApi
from mcp_roundtrip_local.services.service_calls import ObservedServices
from mcp_roundtrip_local.services.sqs import MAX_BODY as MAX_MESSAGE
from mcp_roundtrip_local.services.sqs import Queues
from mcp_roundtrip_local.services.stand_ins import serve_stand_ins
from mcp_roundtrip_local.source_watcher import call_periodically
from mcp_roundtrip_local.terminal.plain_lines import PlainLines
from mcp_roundtrip_local.timers import RealTimers


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
) -> Iterator[LocalApp]:
    """Run a SAM template until the block ends.

    `port` 0 selects a free port. With `fresh`, each invocation gets a new process. `parameters` are those of
    the template. `python` is the interpreter of the functions; it needs awslambdaric. `log` receives the
    lines that functions print, a line for each request, and errors. Sources are checked before invocations,
    at most once in `watch_interval_s`, and in the background unless that is 0. `variables` are added to the
    environment of every function; they override those of `Metadata.LocalRun` in the template (see
    `services.stand_ins`). With `debug`, all functions run in one process that has the terminal, one event at
    a time and without timeouts. `retry_delay_scale` multiplies the delays after which Lambda repeats a failed
    asynchronous invocation. With `users`, an issuer for them runs (`LocalApp.issuer`) at the next free port,
    and AuthMode is bearer. With `console`, the port of the HTTP API also serves the console. Raises
    TemplateError, and OSError if the port is in use.
    """
    app: LocalApp
    with ExitStack() as stack:
        given = {**stack.enter_context(serve_stand_ins(template)), **(variables or {})}
        credentials = Credentials.from_variables(given) or Credentials.random()
        recorder = RunRecorder(*(() if log is None else (PlainLines(log),)), *listeners)
        services = ObservedServices(
            credentials, recorder, lambda suffix: app.invocation_of(suffix), lambda key: app.key_name(key)
        )
        kms, emulator = FakeKms(), Emulator(recorder.note)
        writes = JournalWrites(lambda: current_cause().caller)
        gateway = Gateway(
            lambda: app.routes(),
            lambda *call: app.run(*call),
            recorder,
            cors=lambda: app.cors(),
            timeout_s=TIMEOUT_S if debug else integration_timeout_s,
        )
        stack.callback(gateway.close)
        before = Console(lambda: app, writes, recorder.note).before if console else _unchanged
        front = HttpServer(before(gateway.respond), port=port, max_body=MAX_BODY)
        stack.callback(front.close)
        servers = _listen_for_sdks(stack, lambda: app, services, retry_delay_scale)
        endpoints = {
            # Other services get an error here, so that no request reaches AWS.
            "AWS_ENDPOINT_URL": servers["AWS_ENDPOINT_URL_LAMBDA"].url,
            **{name: server.url for name, server in servers.items()},
            **_serve_storage_and_keys(stack, kms, emulator, services, writes),
        }
        issuer = None
        if users is not None:
            issuer = stack.enter_context(serve_issuer(users, lambda: app.audience(), port=port and port + 1))
        options = Options(
            parameters=_with_issuer(parameters or {}, issuer),
            fresh=fresh,
            python=python,
            watch_interval_s=watch_interval_s,
            variables=given,
            debug=debug,
            issuer=issuer,
            has_console=console,
        )
        app = LocalApp(
            template.resolve(), front.url, endpoints, credentials, kms, emulator, recorder, options
        )
        stack.callback(app.close)
        atexit.register(app.close)  # if the block is never left
        stack.callback(atexit.unregister, app.close)
        for server in (*servers.values(), front):
            server.start()
        if watch_interval_s > 0:
            stack.enter_context(call_periodically(app.current, watch_interval_s))
        yield app


def _with_issuer(given: Mapping[str, str], issuer: LocalIssuer | None) -> Mapping[str, str]:
    return given if issuer is None else {"AuthMode": "bearer", **given, "TokenIssuer": issuer.url}


def _unchanged(respond: Respond) -> Respond:
    return respond


def _listen_for_sdks(
    stack: ExitStack,
    app: Callable[[], LocalApp],
    services: ObservedServices,
    retry_delay_scale: float,
) -> dict[str, HttpServer]:
    """Return the servers of Lambda and SQS by the variables of their URLs. Start them after `app` exists."""
    timers, note = RealTimers(), services.recorder.note
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
        lambda: app().functions(), lambda *call: app().run_nested(*call), later.accept, note
    )
    lambda_server = HttpServer(services.guard(lambda_api.respond), max_body=MAX_PAYLOAD)
    stack.callback(lambda_server.close)
    stack.callback(timers.close)
    sqs_server = HttpServer(services.guard(queues.respond), max_body=MAX_MESSAGE)
    stack.callback(sqs_server.close)
    return {"AWS_ENDPOINT_URL_LAMBDA": lambda_server, "AWS_ENDPOINT_URL_SQS": sqs_server}


def _serve_storage_and_keys(
    stack: ExitStack, kms: FakeKms, emulator: Emulator, services: ObservedServices, writes: JournalWrites
) -> dict[str, str]:
    """Serve DynamoDB, S3 and KMS; return their URLs by the variables that AWS SDKs read."""
    storage_url = stack.enter_context(
        serve_storage(emulator, lambda respond: services.guard(writes.watch(respond)))
    )
    kms_url = stack.enter_context(serve_kms(kms, guard=services.guard)).endpoint_url
    return {
        "AWS_ENDPOINT_URL_KMS": kms_url,
        "AWS_ENDPOINT_URL_DYNAMODB": storage_url,
        "AWS_ENDPOINT_URL_S3": storage_url,
    }
