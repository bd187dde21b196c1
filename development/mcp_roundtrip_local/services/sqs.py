"""SQS's SendMessage, and event source mappings that invoke functions with the messages.

Source: SQS API reference, "SendMessage"; Lambda developer guide, "Using Lambda with Amazon SQS". The batch
size is 1. Emulators run functions by themselves, so they cannot deliver to this runner's processes.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import md5
from typing import Any, Final

from mcp_roundtrip_local.execution.environment import InvocationResult
from mcp_roundtrip_local.http.messages import Request, Response
from mcp_roundtrip_local.template.model import ACCOUNT, REGION, Queue

MAX_BODY: Final = 1024 * 1024
MAX_DELAY_S: Final = 900

_HEADERS: Final = (("Content-Type", "application/x-amz-json-1.0"),)


@dataclass(frozen=True, slots=True)
class _Message:
    queue: Queue
    id: str
    body: str


def event_record(
    message_id: str, body: str, queue_arn: str, *, receives: int, sent_ms: int
) -> dict[str, Any]:
    """Return the event record of a message in delivery number `receives`; `sent_ms` is epoch time."""
    return {
        "messageId": message_id,
        "receiptHandle": f"{message_id}#{receives}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receives),
            "SentTimestamp": str(sent_ms),
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": str(sent_ms),
        },
        "messageAttributes": {},
        "md5OfBody": _digest(body),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


class Queues:
    """Answers SendMessage, and delivers each message to the queue's function until the function succeeds.

    `queues` returns the queues of the template by name. `run` invokes a function with an event in JSON.
    """

    def __init__(
        self,
        queues: Callable[[], Mapping[str, Queue]],
        run: Callable[[str, bytes], InvocationResult],
        log: Callable[[str], None],
    ) -> None:
        self._queues = queues
        self._run = run
        self._log = log
        self._lock = threading.Lock()
        self._timers: set[threading.Timer] = set()
        self._closed = False

    def respond(self, request: Request) -> Response:
        operation = (request.header("x-amz-target") or "").rpartition(".")[2]
        if operation != "SendMessage":
            return _refusal("UnsupportedOperation", f"{operation!r} is not emulated: use SendMessage")
        sent = json.loads(request.body)
        queue = self._queues().get(str(sent["QueueUrl"]).rpartition("/")[2])
        if queue is None:
            return _refusal("QueueDoesNotExist", "The specified queue does not exist.")
        delay_s = sent.get("DelaySeconds", 0)
        if not 0 <= delay_s <= MAX_DELAY_S:
            return _refusal("InvalidParameterValue", f"DelaySeconds must be 0 to {MAX_DELAY_S}")
        message = _Message(queue, str(uuid.uuid4()), sent["MessageBody"])
        self._schedule(delay_s, message, receives=1)
        answer = {"MessageId": message.id, "MD5OfMessageBody": _digest(message.body)}
        return Response(200, _HEADERS, json.dumps(answer).encode())

    def close(self) -> None:
        """Stop delivering messages."""
        with self._lock:
            self._closed = True
            for timer in self._timers:
                timer.cancel()

    def _schedule(self, delay_s: float, message: _Message, receives: int) -> None:
        timer = threading.Timer(delay_s, lambda: self._deliver(timer, message, receives))
        timer.daemon = True
        with self._lock:
            if not self._closed:
                self._timers.add(timer)
                timer.start()

    def _deliver(self, timer: threading.Timer, message: _Message, receives: int) -> None:
        queue = message.queue
        with self._lock:
            self._timers.discard(timer)
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue.name}"
        sent_ms = int(time.time() * 1000)
        delivered = event_record(message.id, message.body, arn, receives=receives, sent_ms=sent_ms)
        result = self._run(queue.reader, json.dumps({"Records": [delivered]}).encode())
        if _is_processed(result, message.id):
            return
        if receives < queue.max_receives:
            self._schedule(queue.visibility_timeout_s, message, receives + 1)
        else:
            self._log(f"[{queue.name}] message dropped after {receives} deliveries: {message.body}")


def _is_processed(result: InvocationResult, message_id: str) -> bool:
    """Return whether the function has processed the message. An invalid response fails the whole batch."""
    if result.failed:
        return False
    try:
        failures = (json.loads(result.payload) or {}).get("batchItemFailures") or ()
        return message_id not in {failure["itemIdentifier"] for failure in failures}
    except (ValueError, AttributeError, LookupError, TypeError):
        return False


def _digest(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _refusal(code: str, message: str) -> Response:
    body = json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": message})
    return Response(400, _HEADERS, body.encode())
