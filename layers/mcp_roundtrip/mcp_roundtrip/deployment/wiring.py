"""The composition root: create the ports from the environment, at the first request.

Only this package and `aws` use the clocks, the randomness and the environment variables of the process.
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

from mcp_roundtrip.auth.callers import Authenticator, AuthMode, Caller, EventAuthenticator
from mcp_roundtrip.deployment.cold_start_imports import ON_DEMAND, SNAP_START, initialization_type
from mcp_roundtrip.deployment.ports import Observer, Ports
from mcp_roundtrip.deployment.settings import VARIABLES, Settings, load_settings, read_variables
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver

if TYPE_CHECKING:
    from mcp_roundtrip.auth.issuer_keys import IssuerKeys
    from mcp_roundtrip.deployment.aws_ports import AwsPorts
    from mcp_roundtrip.observing.opentelemetry_tracer import Tracer

CATALOG_DIGEST: Final = "catalog.digest"
"""The file of `make catalog` in a function's folder, with the digest of its features in the catalog."""

LOCAL_LOG_STREAM: Final = "local"
"""The log stream of the local runner. On Lambda, the variable is reserved."""

SERVICE_NAME: Final = "POWERTOOLS_SERVICE_NAME"

MAX_ENDPOINTS: Final = 16
"""Endpoints with cached ports, if events have the audience: stages and routes of the API's owner."""


def _service() -> str | None:
    """Return the service of lines and metrics: by default the function's name without the stack's."""
    function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    with suppress(SettingsError):  # each request reports it
        if stack := read_variables(os.environ, VARIABLES).get("MCP_ISSUER"):  # the stack's name
            function = function.removeprefix(f"{stack}_")
    return os.environ.get(SERVICE_NAME) or function or None


if (service := _service()) is not None:  # before the module of a tool creates a `Logger` or `Metrics`
    os.environ[SERVICE_NAME] = service


@cache
def observer() -> Observer:
    # The first request waits until a snapshot is restored; a provisioned environment is ready before it.
    return LogObserver(
        service=_service(),
        level=os.environ.get("POWERTOOLS_LOG_LEVEL"),
        starts_cold=initialization_type() in (ON_DEMAND, SNAP_START),
        redacts=os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") != LOCAL_LOG_STREAM,
    )


@cache
def ports() -> Ports:
    """Return the ports of the process. Raises SettingsError, at every request until the setting is right."""
    return make_ports(load_settings(os.environ))


def make_ports(settings: Settings) -> Ports:
    """Create ports on AWS, for each audience in events if the settings have none."""
    tracer = _tracer(settings)
    aws = cache(lambda: _aws_ports(settings, tracer))
    base = _make_ports(settings, aws, tracer)
    if not settings.derives_audience:
        return base

    @lru_cache(MAX_ENDPOINTS)
    def make_for(uri: str) -> Ports:
        own = replace(settings, audience=uri)
        return _make_ports(own, cache(lambda: replace(aws(), settings=own)), tracer)

    def for_endpoint(uri: str | None) -> Ports:
        if uri is not None and _is_in_own_region(uri):
            return make_for(uri)
        if settings.needs_audience:
            raise settings.missing("audience")
        return base

    return replace(base, for_endpoint=for_endpoint)


def _is_in_own_region(uri: str) -> bool:
    """Return whether `https://<id>.<service>.<Region>…` is in the Region of this function.

    Callers of a private API can write another Region into Host.
    """
    return uri.split(".")[2:3] == [os.environ.get("AWS_REGION")]


def _make_ports(settings: Settings, aws: Callable[[], AwsPorts], tracer: Tracer | None) -> Ports:
    return Ports(
        settings=settings,
        authenticator=make_authenticator(settings),
        observer=observer(),
        clock=time.time,
        clock_ms=lambda: time.monotonic() * 1000,
        pause_ms=lambda duration_ms: time.sleep(duration_ms / 1000),
        wait_ms=lambda event, duration_ms: event.wait(duration_ms / 1000),
        random_bytes=os.urandom,
        state_codec=lambda: aws().protection.codec,
        links=lambda: aws().protection.links,
        forward=lambda *forwarded: aws().forward(*forwarded),
        tasks=lambda: aws().tasks,
        audit=None if settings.audit is None else aws().audit_log(settings.audit),
        tracer=tracer,
        catalog_digest=_catalog_digest,
    )


@cache
def _catalog_digest() -> str | None:
    with suppress(OSError, ValueError):
        return Path(os.environ.get("LAMBDA_TASK_ROOT", ""), CATALOG_DIGEST).read_text("ascii").strip()
    return None


def _aws_ports(settings: Settings, tracer: Tracer | None) -> AwsPorts:
    from mcp_roundtrip.deployment.aws_ports import AwsPorts, make_clients  # imports socket

    return AwsPorts(settings, observer(), make_clients(settings, observer(), tracer))


def _tracer(settings: Settings) -> Tracer | None:
    if settings.traces == "off":
        return None
    try:
        from mcp_roundtrip.observing.opentelemetry_tracer import make_tracer  # off by default

        return make_tracer(lambda: os.environ.get("_X_AMZN_TRACE_ID"), os.environ)
    except ImportError as error:
        remedy = (
            "add the layer of ADOT, or install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
        )
        problem = f"is on, and OpenTelemetry is not installed ({error}); {remedy}"
        raise SettingsError("MCP_TRACES", problem) from error


def make_authenticator(settings: Settings) -> Authenticator:
    if settings.audience is None and settings.needs_audience:
        return _WithoutAudience(settings)
    if settings.auth_mode is AuthMode.BEARER:
        return _bearer(settings)
    return EventAuthenticator(
        settings.auth_mode,
        settings.principal_context_key,
        settings.scope_context_key,
        binds_sessions=settings.iam_principal == "session",
    )


def _bearer(settings: Settings) -> Authenticator:
    from mcp_roundtrip.auth.bearer import BearerAuthenticator  # a plain call verifies no token

    keys = cache(lambda: _issuer_keys(settings))
    return BearerAuthenticator(
        issuer=settings.required("token_issuer"),
        audiences=settings.token_audience or (settings.required("audience"),),
        algorithms=frozenset(settings.token_algorithms),
        verify=lambda *token: keys().verify(*token),
        clock=time.time,
        requires_at_jwt=settings.token_type == "at+jwt",  # noqa: S105 - no secret
        requires_client=bool(settings.token_audience),
    )


def _issuer_keys(settings: Settings) -> IssuerKeys:
    from mcp_roundtrip.auth.issuer_keys import IssuerKeys, fetch  # PyJWT and http.client

    return IssuerKeys(
        settings.required("token_issuer"),
        settings.token_jwks_uri,
        fetch,
        time.time,
        on_failure=lambda failure: observer().record_failure("issuer_unavailable", failure),
    )


class _WithoutAudience(Struct, frozen=True):
    """Authenticates no caller: with an unknown audience, a token may have been issued for another server."""

    settings: Settings

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        raise self.settings.missing("audience")
