"""Lambda and SQS: forward a call to the owner of its tool, and dispatch the workers of tasks.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from mcp_roundtrip.aws.client_interface import MAX_CODE, AwsClient, AwsError, ClientFactory
from mcp_roundtrip.internal_errors import ForwardingFailed, StoreError
from mcp_roundtrip.protocol.strict_json import compact_json, parse_json

MAX_DELAY_S: Final = 900
"""The longest delay of an SQS message. `Watchdog.wake` sends a message that arrives early again."""


def invoke_owner(
    invoke_client: AwsClient,
    function: str,
    event: Mapping[str, Any],
    custom: Mapping[str, Any],
    timeout_s: int,
) -> Any:
    """Return a function's response to an event with this `client_context.custom`. Raises ForwardingFailed."""
    try:
        response = invoke_client.call(
            "Invoke",
            timeout_s=timeout_s,
            FunctionName=function,
            Payload=_payload(event),
            ClientContext=b64encode(compact_json({"custom": custom}).encode()).decode(),
        )
    except AwsError as error:
        is_throttled = error.code == "TooManyRequestsException"
        raise ForwardingFailed(error.code, is_throttled=is_throttled) from error
    return _parse_response(response["Payload"], is_failure="FunctionError" in response)


def _parse_response(payload: bytes, *, is_failure: bool) -> dict[str, Any]:
    try:
        answer = parse_json(payload)
    except ValueError:
        raise ForwardingFailed("malformed_answer") from None
    if is_failure:  # only the type: the runtime's message may quote the event
        kind = answer.get("errorType") if isinstance(answer, dict) else None
        raise ForwardingFailed(kind[:MAX_CODE] if isinstance(kind, str) else "unhandled")
    if not isinstance(answer, dict):
        raise ForwardingFailed("malformed_answer")
    return answer


def _payload(event: Mapping[str, Any]) -> bytes:
    """Encode an event in UTF-8, as API Gateway does: escapes would triple some texts of at most 6 MB."""
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return compact_json(event).encode()


class AwsDispatcher:
    """Dispatches each worker by its address: the ARN of a function, or the URL of a standard queue.

    An ARN has the version that created the task. `queue` is the URL of the queue that wakes the sleeping
    tasks of a function, because Lambda cannot delay an invocation. Without it, the next poll wakes them.

    Needs lambda:InvokeFunction or sqs:SendMessage, and sqs:ChangeMessageVisibility for `hide_message`. Raises
    StoreError.
    """

    def __init__(self, clients: ClientFactory, clock_ms: Callable[[], int], queue: str | None = None) -> None:
        self._client = cache(clients.client)
        self._clock_ms = clock_ms
        self._queue = queue

    def dispatch(self, worker: str, pk: str) -> None:
        if not worker.startswith("arn:"):
            self._send(worker, {"task": pk}, delay_s=0)
            return
        try:
            self._invoke(worker, pk)
        except StoreError as error:
            if error.reason != "ResourceNotFoundException":
                raise
            # The version was deleted. The newest code, whose ARN ends with the name of the function, runs the
            # task, or fails it with Drift.
            self._invoke(":".join(worker.split(":")[:7]), pk)

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        queue = self._queue if worker.startswith("arn:") else worker
        if queue is not None:
            delay_s = -(-max(at_ms - self._clock_ms(), 0) // 1000)
            self._send(queue, {"task": pk, "wake": at_ms}, delay_s=min(delay_s, MAX_DELAY_S))

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        message = {"QueueUrl": queue, "ReceiptHandle": receipt_handle}
        self._call("sqs", "ChangeMessageVisibility", **message, VisibilityTimeout=duration_s)

    def _invoke(self, function: str, pk: str) -> None:
        payload = compact_json({"task": pk}).encode()
        self._call("lambda", "Invoke", FunctionName=function, InvocationType="Event", Payload=payload)

    def _send(self, queue: str, message: Mapping[str, Any], *, delay_s: int) -> None:
        body = compact_json({**message, "queue": queue})  # its worker hides it
        self._call("sqs", "SendMessage", QueueUrl=queue, MessageBody=body, DelaySeconds=delay_s)

    def _call(self, service: str, operation: str, **parameters: Any) -> None:
        try:
            self._client(service).call(operation, **parameters)
        except AwsError as error:
            raise StoreError(error.code) from error
