"""Create the audit log of a deployment from its settings. Imported only if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcp_roundtrip.aws.audit_log import AuditKey, CloudWatchAuditLog
from mcp_roundtrip.deployment.ports import AuditLog
from mcp_roundtrip.deployment.settings import Settings
from mcp_roundtrip.observing.audit_records import hashed_caller, plain_caller

if TYPE_CHECKING:
    from mcp_roundtrip.aws.clients import AwsClients


def make_audit_log(
    settings: Settings,
    clients: Callable[[], AwsClients],
    environment: Mapping[str, str],
    random_bytes: Callable[[int], bytes],
) -> AuditLog:
    """Create the audit log; it makes its clients at the first record.

    In mode `hash`, the KMS key `alias/<issuer>-audit` derives the key of the hashes.
    """
    audit, issuer = settings.audit, settings.issuer or ""
    assert audit is not None
    function = environment.get("AWS_LAMBDA_FUNCTION_NAME", "")
    # Versions of a function, and functions with one log group, have different streams.
    stream = environment.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{function}/{random_bytes(16).hex()}"
    log = CloudWatchAuditLog(lambda: clients().client("logs"), audit.log_group, stream.replace(":", "_"))
    key = AuditKey(lambda: clients().client("kms"), f"alias/{issuer}-audit", issuer)
    identify = plain_caller if audit.mode == "principal" else lambda who: hashed_caller(who, key.secret)
    source = {"stack": issuer, "function": function.removeprefix(f"{issuer}_") if issuer else function}
    return AuditLog(log.write, identify, source, lambda: environment.get("_X_AMZN_TRACE_ID"))
