"""Start the emulated services of one run for the SDKs in functions: KMS, DynamoDB, S3, Lambda, SQS, Logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.emulated_services import EmulatedServices
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.observation.causes import current_cause
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.services.credentials import Credentials
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.emulator import serve as serve_storage
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms_api import serve as serve_kms
from mcp_roundtrip_tools.run.services.lambda_api import MAX_PAYLOAD, LambdaApi
from mcp_roundtrip_tools.run.services.logs import MAX_BODY as MAX_LOG_EVENTS
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from mcp_roundtrip_tools.run.services.service_calls import ObservedServices
from mcp_roundtrip_tools.run.services.sqs import MAX_BODY as MAX_MESSAGE
from mcp_roundtrip_tools.run.services.sqs import Queues
from mcp_roundtrip_tools.run.timers import RealTimers


def listen_for_sdks(
    stack: ExitStack,
    app: Callable[[], LocalApp],
    recorder: RunRecorder,
    variables: Mapping[str, str],
    retry_delay_scale: float,
) -> EmulatedServices:
    """Return the services of a run; the stack closes them. `variables` can name the access key."""
    credentials = Credentials.from_variables(variables) or Credentials.random()
    observed = ObservedServices(
        credentials, recorder, lambda suffix: app().invocation_of(suffix), lambda key: app().key_name(key)
    )
    kms, emulator = FakeKms(), Emulator(recorder.note)
    writes = JournalWrites(lambda: current_cause().caller)
    servers = _listen_for_invocations(stack, app, observed, retry_delay_scale)
    endpoints = {
        # Other services get an error here, so that no request reaches AWS.
        "AWS_ENDPOINT_URL": servers["AWS_ENDPOINT_URL_LAMBDA"].url,
        **{name: server.url for name, server in servers.items()},
        **_serve_storage_and_keys(stack, kms, emulator, observed, writes),
    }
    return EmulatedServices(credentials, kms, emulator, writes, endpoints, tuple(servers.values()))


def _listen_for_invocations(
    stack: ExitStack, app: Callable[[], LocalApp], observed: ObservedServices, retry_delay_scale: float
) -> dict[str, HttpServer]:
    """Return the servers of Lambda, SQS and CloudWatch Logs by the variables of their URLs."""
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
    lambda_server = HttpServer(observed.guard(lambda_api.respond), max_body=MAX_PAYLOAD)
    stack.callback(lambda_server.close)
    stack.callback(timers.close)
    sqs_server = HttpServer(observed.guard(queues.respond), max_body=MAX_MESSAGE)
    stack.callback(sqs_server.close)
    # Of log groups, only that of audit records is written by functions. The terminal shows its lines.
    logs = FakeLogs(lambda group: True, lambda group, line: note(f"[{group}] {line}"))
    logs_server = HttpServer(observed.guard(logs.respond), max_body=MAX_LOG_EVENTS)
    stack.callback(logs_server.close)
    return {
        "AWS_ENDPOINT_URL_LAMBDA": lambda_server,
        "AWS_ENDPOINT_URL_SQS": sqs_server,
        "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": logs_server,
    }


def _serve_storage_and_keys(
    stack: ExitStack, kms: FakeKms, emulator: Emulator, observed: ObservedServices, writes: JournalWrites
) -> dict[str, str]:
    """Serve DynamoDB, S3 and KMS; return their URLs by the variables that AWS SDKs read."""
    storage_url = stack.enter_context(
        serve_storage(emulator, lambda respond: observed.guard(writes.watch(respond)))
    )
    kms_url = stack.enter_context(serve_kms(kms, guard=observed.guard)).endpoint_url
    return {
        "AWS_ENDPOINT_URL_KMS": kms_url,
        "AWS_ENDPOINT_URL_DYNAMODB": storage_url,
        "AWS_ENDPOINT_URL_S3": storage_url,
    }
