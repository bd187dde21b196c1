"""Create the ports that call AWS, each at its first use. Most requests do not import this module."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_roundtrip.aws.lambda_and_sqs import invoke_owner
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.ports import AuditLog, Observer
from mcp_roundtrip.deployment.settings import Audit, Settings
from mcp_roundtrip.engine.deadline import retries_end_at_ms
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError

if TYPE_CHECKING:
    from mcp_roundtrip.aws.client_interface import AwsClient, ClientFactory
    from mcp_roundtrip.deployment.state_codec_factory import StateProtection
    from mcp_roundtrip.observing.opentelemetry_tracer import Tracer
    from mcp_roundtrip.tasks.service import Tasks


def make_clients(settings: Settings, observer: Observer, tracer: Tracer | None) -> ClientFactory:
    make = AwsClients
    if settings.aws_client == "boto3":
        from mcp_roundtrip.aws.boto3_client import Boto3Clients  # 130 ms

        make = Boto3Clients
    clients = make(
        on_request=lambda service, operation: observer.count_aws_call(service),
        time_left_s=lambda: retries_end_at_ms.get() / 1000 - time.monotonic(),
    )
    return clients if tracer is None else tracer.traced(clients)


class AwsPorts(Struct, dict=True, eq=False):  # dict: for cached_property
    """The ports that call AWS for one endpoint. All endpoints share `clients` and their credentials."""

    settings: Settings
    observer: Observer
    clients: ClientFactory

    @cached_property
    def protection(self) -> StateProtection:
        from mcp_roundtrip.deployment.state_codec_factory import StateProtection  # imports cryptography

        logs = (self._log_certificate, self._log_failed_renewal)
        return StateProtection(self.settings, self.clients, time.time, os.urandom, *logs)

    def _log_certificate(self, certificate: str, expires_at: int) -> None:
        self.observer.record("certificate_issued", certificate=certificate, expires_at=expires_at)

    def _log_failed_renewal(self, error: KeyServiceError) -> None:
        self.observer.record("key_renewal_failed", reason=error.reason, problem=str(error))

    @cached_property
    def tasks(self) -> Tasks:
        from mcp_roundtrip.deployment.aws_tasks import make_tasks  # most requests need no tasks

        return make_tasks(self.settings, self.observer, self.clients)

    def audit_log(self, audit: Audit) -> AuditLog:
        """Return the audit log. In mode `hash`, the KMS key `alias/<issuer>-audit` derives its key."""
        from mcp_roundtrip.aws.audit_log import CloudWatchAuditLog, derive_audit_key  # off by default

        issuer = self.settings.issuer or ""
        function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        # Versions of a function, and functions with one log group, have different streams.
        stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{function}/{os.urandom(16).hex()}"
        stream = stream.replace(":", "_")
        log = CloudWatchAuditLog(cache(lambda: self.clients.client("logs")), audit.log_group, stream)
        hash_key = cache(
            lambda: derive_audit_key(self.clients.client("kms"), f"alias/{issuer}-audit", issuer)
        )
        return AuditLog(
            log.write,
            source={"stack": issuer, "function": function.removeprefix(f"{issuer}_") if issuer else function},
            hash_key=None if audit.mode == "principal" else hash_key,
            trace_header=lambda: os.environ.get("_X_AMZN_TRACE_ID"),
        )

    def forward(self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int) -> Any:
        function = owner_function(self.settings, owner)
        return invoke_owner(self._invoke_client, function, event, custom, timeout_s)

    @cached_property
    def _invoke_client(self) -> AwsClient:
        return self.clients.invoke_client()


def owner_function(settings: Settings, owner: str) -> str:
    """Return the name or ARN of the function of an owner. Raises SettingsError."""
    owners = settings.owners or {}
    if isinstance(owners, str):
        return owners.replace("*", owner)
    function = owners.get(owner)
    if function is None:
        raise SettingsError("MCP_OWNERS", f"names no function for {owner!r}; add it, or run `make catalog`")
    return function
