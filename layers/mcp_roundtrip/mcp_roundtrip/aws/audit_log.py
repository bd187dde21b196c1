"""The audit log: a log group of CloudWatch Logs, and the key of the hashes in it.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.internal_errors import AuditFailed


class CloudWatchAuditLog(Struct, eq=False):
    """Writes one log event at a time, and returns when CloudWatch Logs has stored it.

    The stream belongs to one execution environment, and is created at the first write.
    """

    client: Callable[[], AwsClient]
    group: str
    stream: str
    _has_stream: bool = False

    def write(self, time_ms: int, line: str) -> None:
        """Store one line with its time in epoch milliseconds. Raises AuditFailed.

        If a response is lost, the line is stored twice, with the same record id.
        """
        try:
            if not self._has_stream:
                self._create_stream()
            try:
                self._put(time_ms, line)
            except AwsError as error:
                if error.code != "ResourceNotFoundException":
                    raise
                self._create_stream()  # it was deleted
                self._put(time_ms, line)
        except AwsError as error:
            raise AuditFailed(error.code) from error

    def _create_stream(self) -> None:
        try:
            self.client().call("CreateLogStream", logGroupName=self.group, logStreamName=self.stream)
        except AwsError as error:
            if error.code != "ResourceAlreadyExistsException":  # as after a repeated request
                raise
        self._has_stream = True

    def _put(self, time_ms: int, line: str) -> None:
        answer = self.client().call(
            "PutLogEvents",
            logGroupName=self.group,
            logStreamName=self.stream,
            logEvents=[{"timestamp": time_ms, "message": line}],
        )
        if answer.get("rejectedLogEventsInfo"):  # with status 200, for example if this clock is wrong
            raise AuditFailed("rejected")


def derive_audit_key(client: AwsClient, key_id: str, issuer: str) -> bytes:
    """Return the key of the hashes: 32 bytes, which a KMS key (HMAC_256) derives. Raises AuditFailed.

    All environments derive the same key. The KMS key never leaves KMS, so only callers with permission to use
    it can compute the hash of a guessed subject.
    """
    message = f"mcp-rs/v1/audit:{issuer}".encode()
    try:
        answer = client.call("GenerateMac", KeyId=key_id, Message=message, MacAlgorithm="HMAC_SHA_256")
    except AwsError as error:
        raise AuditFailed(error.code) from error
    mac = answer.get("Mac")
    if not isinstance(mac, bytes) or len(mac) != 32:
        raise AuditFailed("malformed_answer")
    return mac
