"""The composition root: create the ports from the environment, at the first request.

Only this module uses the clocks, the randomness and the environment variables of the process and, through
`aws`, the AWS account.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Authenticator, AuthMode, Caller, EventAuthenticator, IssuerUnavailable
from mcp_roundtrip.auth.scopes import PrefixedScopes
from mcp_roundtrip.deployment.cold_start import ON_DEMAND, SNAP_START, initialization_type
from mcp_roundtrip.deployment.ports import AuditLog, Observer, Ports, TaskPort
from mcp_roundtrip.deployment.settings import VARIABLES, Audit, Settings, load_settings, read_variables
from mcp_roundtrip.engine.deadline import retries_end_at_ms
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver

if TYPE_CHECKING:
    from mcp_roundtrip.auth.issuer_keys import IssuerKeys
    from mcp_roundtrip.aws.clients import AwsClients
    from mcp_roundtrip.aws.invocation import LambdaForwarder
    from mcp_roundtrip.deployment.state_codec_factory import StateProtection
    from mcp_roundtrip.observing.tracer import Tracer

CATALOG_DIGEST: Final = "catalog.digest"
"""The file in the folder of a function with the digest of its features in the front door's catalog."""

LOCAL_LOG_STREAM: Final = "local"
"""The log stream of the local runner. On Lambda nothing else can set the variable, which Lambda reserves."""

SERVICE_NAME: Final = "POWERTOOLS_SERVICE_NAME"

MAX_ENDPOINTS: Final = 16
"""Endpoints whose ports are kept, if events tell the audience: stages and routes of the API's owner."""


def _prefix() -> str:
    """Return how the function's name begins: with the issuer of states, which is the stack's name."""
    with suppress(SettingsError):  # each request reports it
        if stack := read_variables(os.environ, VARIABLES).get("MCP_ISSUER"):
            return f"{stack}_"
    return ""


def _service() -> str | None:
    """Return the service of lines and metrics: by default the function's name without that of its stack."""
    function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    return os.environ.get(SERVICE_NAME) or function.removeprefix(_prefix()) or None


if (service := _service()) is not None:  # before the module of a tool creates a `Logger` or `Metrics`
    os.environ[SERVICE_NAME] = service


@cache
def observer() -> Observer:
    # The first request waits until a snapshot is restored; a provisioned environment is ready before it.
    return LogObserver(
        service=_service(),
        starts_cold=initialization_type() in (ON_DEMAND, SNAP_START),
        redacts=os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") != LOCAL_LOG_STREAM,
    )


@cache
def ports() -> Ports:
    """Return the ports of the process. Raises SettingsError, at every request until the setting is right."""
    return make_ports(load_settings(os.environ))


def make_ports(settings: Settings) -> Ports:
    """Create ports on AWS for these settings, or for each audience that events tell."""
    clients = cache(lambda: _aws_clients(settings))
    base = _make_ports(settings, clients)
    if not settings.derives_audience:
        return base

    make_for = lru_cache(MAX_ENDPOINTS)(lambda uri: _make_ports(replace(settings, audience=uri), clients))

    def for_endpoint(uri: str | None) -> Ports:
        if uri is not None and _is_in_own_region(uri):
            return make_for(uri)
        if settings.needs_audience:
            raise settings.missing("audience")
        return base

    return replace(base, for_endpoint=for_endpoint)


def _is_in_own_region(uri: str) -> bool:
    """Return whether `https://<id>.<service>.<Region>…` is in the Region of this function.

    Callers of a private API choose the API with a header, and could write another Region into Host.
    """
    return uri.split(".")[2:3] == [os.environ.get("AWS_REGION")]


def _make_ports(settings: Settings, clients: Callable[[], AwsClients]) -> Ports:
    protection = cache(lambda: _state_protection(settings, clients))
    forward = cache(lambda: _forwarder(clients()))
    tasks = cache(lambda: _task_port(settings, clients()))
    return Ports(
        settings=settings,
        authenticator=make_authenticator(settings),
        observer=observer(),
        clock=time.time,
        clock_ms=lambda: time.monotonic() * 1000,
        pause_ms=lambda duration_ms: time.sleep(duration_ms / 1000),
        wait_ms=lambda event, duration_ms: event.wait(duration_ms / 1000),
        random_bytes=os.urandom,
        state_codec=lambda: protection().codec,
        links=lambda: protection().links,
        forward=lambda owner, *passed: forward()(_owner_function(settings, owner), *passed),
        tasks=tasks,
        audit=None if settings.audit is None else _audit_log(settings, settings.audit, clients),
        tracer=_tracer(settings),
        catalog_digest=_catalog_digest,
    )


@cache
def _catalog_digest() -> str | None:
    """Return what `make catalog` wrote into the folder of this function; None if there is nothing."""
    with suppress(OSError, ValueError):
        return Path(os.environ.get("LAMBDA_TASK_ROOT", ""), CATALOG_DIGEST).read_text("ascii").strip()
    return None


def _state_protection(settings: Settings, clients: Callable[[], AwsClients]) -> StateProtection:
    from mcp_roundtrip.deployment.state_codec_factory import StateProtection

    def log_certificate(certificate: str, expires_at: int) -> None:
        observer().record("certificate_issued", certificate=certificate, expires_at=expires_at)

    return StateProtection(settings, clients, time.time, os.urandom, log_certificate)


def _tracer(settings: Settings) -> Tracer | None:
    if settings.traces == "off":
        return None
    try:
        from mcp_roundtrip.observing.tracer import make_tracer  # off by default

        return make_tracer(lambda: os.environ.get("_X_AMZN_TRACE_ID"), os.environ)
    except ImportError as error:
        remedy = (
            "add the layer of ADOT, or install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
        )
        problem = f"is on, and OpenTelemetry is not installed ({error}); {remedy}"
        raise SettingsError("MCP_TRACES", problem) from error


def _aws_clients(settings: Settings) -> AwsClients:
    from mcp_roundtrip.aws.clients import AwsClients  # imports socket

    make = AwsClients
    if settings.aws_client == "boto3":
        from mcp_roundtrip.aws.boto3_client import Boto3Clients  # 130 ms

        make = Boto3Clients
    clients = make(
        environment=os.environ,
        on_request=lambda service, operation: observer().count_aws_call(service),
        time_left_s=lambda: retries_end_at_ms.get() / 1000 - time.monotonic(),
    )
    if (tracer := _tracer(settings)) is None:
        return clients
    from mcp_roundtrip.aws.traced_clients import TracedAwsClients  # off by default

    return TracedAwsClients(clients, tracer)


def _task_port(settings: Settings, clients: AwsClients) -> TaskPort:
    from mcp_roundtrip.aws import dynamodb, invocation  # most requests need no table
    from mcp_roundtrip.tasks.service import Tasks

    table = settings.required("task_table")
    store = dynamodb.DynamoStore(clients.client("dynamodb"), table)
    clock_ms = lambda: int(time.time() * 1000)  # noqa: E731 - as short as its use
    dispatcher = invocation.AwsDispatcher(clients, clock_ms, settings.task_queue)
    tasks = Tasks(
        store,
        dispatcher,
        clock_ms=clock_ms,
        on_abandoned=lambda task_id: observer().record("task_abandoned", task=task_id),
        on_dispatch_failed=lambda task_id, error: observer().record_failure(
            "dispatch_failed", error, task=task_id
        ),
        max_open=settings.max_open_tasks,
    )
    return TaskPort(tasks, settings.worker_address, settings.task_lease_s * 1000, dispatcher.hide_message)


def _audit_log(settings: Settings, audit: Audit, clients: Callable[[], AwsClients]) -> AuditLog:
    """Create the audit log; it makes its clients at the first record.

    In mode `hash`, the KMS key `alias/<issuer>-audit` derives the key of the hashes.
    """
    from mcp_roundtrip.aws.audit_log import AuditKey, CloudWatchAuditLog  # off by default
    from mcp_roundtrip.observing.audit_records import hashed_caller, plain_caller

    issuer = settings.issuer or ""
    function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    # Versions of a function, and functions with one log group, have different streams.
    stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{function}/{os.urandom(16).hex()}"
    log = CloudWatchAuditLog(lambda: clients().client("logs"), audit.log_group, stream.replace(":", "_"))
    key = AuditKey(lambda: clients().client("kms"), f"alias/{issuer}-audit", issuer)
    identify = plain_caller if audit.mode == "principal" else lambda who: hashed_caller(who, key.secret)
    source = {"stack": issuer, "function": function.removeprefix(f"{issuer}_") if issuer else function}
    return AuditLog(log.write, identify, source, lambda: os.environ.get("_X_AMZN_TRACE_ID"))


def _forwarder(clients: AwsClients) -> LambdaForwarder:
    from mcp_roundtrip.aws.invocation import LambdaForwarder

    return LambdaForwarder(clients.invoke_client())


def _owner_function(settings: Settings, owner: str) -> str:
    owners = settings.owners or {}
    if isinstance(owners, str):
        return owners.replace("*", owner)
    function = owners.get(owner)
    if function is None:
        raise SettingsError("MCP_OWNERS", f"names no function for {owner!r}; add it, or run `make catalog`")
    return function


def make_authenticator(settings: Settings) -> Authenticator:
    """Create the authenticator; it removes the prefix from scopes. Raises SettingsError."""
    if settings.audience is None and settings.needs_audience:
        return _WithoutAudience(settings)
    authenticator: Authenticator
    if settings.auth_mode is AuthMode.BEARER:
        authenticator = _bearer(settings)
    else:
        authenticator = EventAuthenticator(
            settings.auth_mode,
            settings.principal_context_key,
            settings.scope_context_key,
            settings.iam_principal == "session",
        )
    prefix = settings.scope_prefix
    return PrefixedScopes(authenticator, prefix) if prefix else authenticator


def _bearer(settings: Settings) -> Authenticator:
    from mcp_roundtrip.auth.bearer import BearerAuthenticator  # a plain call verifies no token

    keys = cache(lambda: _issuer_keys(settings))
    return BearerAuthenticator(
        settings.required("token_issuer"),
        settings.token_audience or (settings.required("audience"),),
        frozenset(settings.token_algorithms),
        lambda *token: keys().verify(*token),
        time.time,
        settings.token_type == "at+jwt",  # noqa: S105 - no secret
        requires_client=bool(settings.token_audience),
    )


def _issuer_keys(settings: Settings) -> IssuerKeys:
    from mcp_roundtrip.auth.issuer_keys import IssuerKeys, fetch  # PyJWT and http.client

    def record(failure: IssuerUnavailable) -> None:
        observer().record_failure("issuer_unavailable", failure)

    issuer = settings.required("token_issuer")
    return IssuerKeys(issuer, settings.token_jwks_uri, fetch, time.time, record)


class _WithoutAudience(Struct, frozen=True):
    """Authenticates no caller: with an unknown audience, a token may have been issued for another server."""

    settings: Settings

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        raise self.settings.missing("audience")
