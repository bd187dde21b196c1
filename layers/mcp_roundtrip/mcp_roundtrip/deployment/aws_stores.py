"""Create the ports that store in AWS: tasks in a table of DynamoDB, audit records in CloudWatch Logs."""

from __future__ import annotations

import os
import time
from functools import cached_property

from msgspec import Struct

from mcp_roundtrip.aws.audit_log import AuditKey, CloudWatchAuditLog
from mcp_roundtrip.aws.client_interface import ClientFactory
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.invocation import AwsDispatcher
from mcp_roundtrip.deployment.ports import AuditLog, Observer
from mcp_roundtrip.deployment.settings import Audit, Settings
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.observing.audit_records import hashed_caller, plain_caller
from mcp_roundtrip.tasks.service import Tasks


class AwsStores(Struct, dict=True, eq=False):  # dict: for cached_property
    """The ports that store in AWS. Each makes its clients at its first use."""

    settings: Settings
    observer: Observer
    clients: ClientFactory

    @cached_property
    def tasks(self) -> Tasks:
        settings = self.settings
        store = DynamoStore(self.clients.client("dynamodb"), settings.required("task_table"))
        return Tasks(
            store,
            AwsDispatcher(self.clients, _clock_ms, settings.task_queue),
            clock_ms=_clock_ms,
            on_abandoned=self._log_abandoned,
            on_dispatch_failed=self._log_dispatch_failed,
            max_open=settings.max_open_tasks,
        )

    def _log_abandoned(self, task_id: str) -> None:
        self.observer.record("task_abandoned", task=task_id)

    def _log_dispatch_failed(self, task_id: str, error: StoreError) -> None:
        self.observer.record_failure("dispatch_failed", error, task=task_id)

    def audit_log(self, audit: Audit) -> AuditLog:
        """Return the audit log. In mode `hash`, the KMS key `alias/<issuer>-audit` derives its key."""
        issuer = self.settings.issuer or ""
        function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        # Versions of a function, and functions with one log group, have different streams.
        stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{function}/{os.urandom(16).hex()}"
        stream = stream.replace(":", "_")
        log = CloudWatchAuditLog(lambda: self.clients.client("logs"), audit.log_group, stream)
        key = AuditKey(lambda: self.clients.client("kms"), f"alias/{issuer}-audit", issuer)
        identify = plain_caller if audit.mode == "principal" else lambda who: hashed_caller(who, key.secret)
        source = {"stack": issuer, "function": function.removeprefix(f"{issuer}_") if issuer else function}
        return AuditLog(log.write, identify, source, lambda: os.environ.get("_X_AMZN_TRACE_ID"))


def _clock_ms() -> int:
    return int(time.time() * 1000)
