"""Start the emulated services of one run for the SDKs in functions: KMS, DynamoDB, S3, Lambda, SQS, Logs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.async_invocations import AsyncInvocations
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.observation.causes import current_cause
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.options import Options
from mcp_roundtrip_tools.run.servers import EmulatedServices
from mcp_roundtrip_tools.run.services.aws_endpoint import AwsEndpoint, AwsService
from mcp_roundtrip_tools.run.services.credentials import Credentials, Respond
from mcp_roundtrip_tools.run.services.emulator import MAX_BODY as MAX_STORAGE
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.kms import MAX_BODY as MAX_KMS
from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms import respond as respond_kms
from mcp_roundtrip_tools.run.services.lambda_api import MAX_PAYLOAD, LambdaApi
from mcp_roundtrip_tools.run.services.logs import MAX_BODY as MAX_LOG_EVENTS
from mcp_roundtrip_tools.run.services.logs import FakeLogs
from mcp_roundtrip_tools.run.services.service_calls import ObservedServices
from mcp_roundtrip_tools.run.services.sqs import MAX_BODY as MAX_MESSAGE
from mcp_roundtrip_tools.run.services.sqs import Queues
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
