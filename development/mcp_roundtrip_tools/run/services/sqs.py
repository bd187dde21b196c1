"""SQS queues, and event source mappings that invoke functions with their messages.

Sources: SQS API reference; Lambda developer guide, "Using Lambda with Amazon SQS". The batch size is 1.
Emulators run functions by themselves, so they cannot deliver to this runner's processes.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any, Final

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.records import caused_by, current_cause
from mcp_roundtrip_tools.run.timers import Timers
from mcp_roundtrip_tools.template.model import Queue, queue_arn


class SqsError(Exception):
    """An error response of SQS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """A message. Its receipt handle is that of the last receive; times are epoch seconds.

    `caller` is the id of the invocation that sent it.
    """

    body: str
    sent_s: float
    visible_s: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    receives: int = 0
    first_received_s: float = 0.0
    caller: str | None = None

    @property
    def receipt_handle(self) -> str:
        return f"{self.id}#{self.receives}"


class MessageQueue:
    """Messages in the order in which they were sent. Thread-safe."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._messages: dict[str, Message] = {}

    def put(self, message: Message) -> None:
        """Add a message, or replace the one with its id."""
        with self._lock:
            self._messages[message.id] = message

    def get(self, message_id: str) -> Message | None:
        """Return a message without receiving it."""
        with self._lock:
            return self._messages.get(message_id)

    def first_visible(self) -> str | None:
        """Return the id of the first message that can be received."""
        with self._lock:
            now_s = self._now_s()
            return next((each.id for each in self._messages.values() if each.visible_s <= now_s), None)

    def receive(self, message_id: str, visibility_timeout_s: float) -> Message | None:
        """Receive a message; return None if it is not visible."""
        with self._lock:
            message, now_s = self._messages.get(message_id), self._now_s()
            if message is None or message.visible_s > now_s:
                return None
            received = self._messages[message_id] = replace(
                message,
                receives=message.receives + 1,
                visible_s=now_s + visibility_timeout_s,
                first_received_s=message.first_received_s or now_s,
            )
            return received

    def delete(self, receipt_handle: str) -> None:
        """Delete a message. Do nothing if it was received again since: SQS may not delete it either."""
        with self._lock:
            message = self._find(receipt_handle)
            if message is not None:
                del self._messages[message.id]

    def change_visibility(self, receipt_handle: str, timeout_s: float) -> Message:
        """Hide a message that is in flight for `timeout_s` from now. Raises SqsError."""
        with self._lock:
            message, now_s = self._find(receipt_handle), self._now_s()
            if message is None:
                raise SqsError("ReceiptHandleIsInvalid", "The receipt handle has expired.")
            if message.visible_s <= now_s:
                raise SqsError("MessageNotInflight", "The message is not in flight.")
            changed = self._messages[message.id] = replace(message, visible_s=now_s + timeout_s)
            return changed

    def _find(self, receipt_handle: str) -> Message | None:
        message = self._messages.get(receipt_handle.partition("#")[0])
        return message if message is not None and message.receipt_handle == receipt_handle else None


MAX_BODY: Final = 1024 * 1024
MAX_DELAY_S: Final = 900
MAX_VISIBILITY_S: Final = 43_200

_HEADERS: Final = (("Content-Type", "application/x-amz-json-1.0"),)


def event_record(message: Message, arn: str) -> dict[str, Any]:
    """Return the event record of a message that was just received."""
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(int(message.sent_s * 1000)),
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": str(int(message.first_received_s * 1000)),
        },
        "messageAttributes": {},
        "md5OfBody": _digest(message.body),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": arn.split(":")[3],
    }


class Queues:
    """Answers requests, and delivers each message to the function of its queue until the function succeeds.

    `queues` returns the queues of the template by name. `run` invokes a function with an event in JSON.
    """

    def __init__(
        self,
        queues: Callable[[], Mapping[str, Queue]],
        run: Callable[[str, bytes], InvocationResult],
        log: Callable[[str], None],
        timers: Timers,
    ) -> None:
        self._queues = queues
        self._run = run
        self._log = log
        self._timers = timers
        self._lock = threading.Lock()
        self._stored: dict[str, MessageQueue] = {}
        self._operations: Mapping[str, Callable[[Queue, Mapping[str, Any]], dict[str, Any]]] = {
            "SendMessage": self._send_message,
            "ReceiveMessage": self._receive_message,
            "DeleteMessage": self._delete_message,
            "ChangeMessageVisibility": self._change_message_visibility,
        }

    def respond(self, request: Request) -> Response:
        name = (request.header("x-amz-target") or "").rpartition(".")[2]
        try:
            operation = self._operations.get(name)
            if operation is None:
                emulated = ", ".join(self._operations)
                raise SqsError("UnsupportedOperation", f"{name!r} is not emulated: {emulated} are")
            given = json.loads(request.body)
            queue = self._queues().get(str(given["QueueUrl"]).rpartition("/")[2])
            if queue is None:
                raise SqsError("QueueDoesNotExist", "The specified queue does not exist.")
            return Response(200, _HEADERS, json.dumps(operation(queue, given)).encode())
        except SqsError as error:
            body = json.dumps({"__type": f"com.amazonaws.sqs#{error.code}", "message": str(error)})
            return Response(400, _HEADERS, body.encode())

    def send(self, arn: str, body: str) -> bool:
        """Send a message to the queue with this ARN; return False if the template has none."""
        queue = self._queues().get(arn.rpartition(":")[2])
        if queue is None or arn != queue_arn(queue.name):
            return False
        self._put(queue, body, 0)
        return True

    def _send_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        delay_s = given.get("DelaySeconds", 0)
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise SqsError("InvalidParameterValue", f"DelaySeconds must be 0 to {MAX_DELAY_S}")
        message = self._put(queue, given["MessageBody"], delay_s)
        return {"MessageId": message.id, "MD5OfMessageBody": _digest(message.body)}

    def _receive_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        message_id = self._messages(queue).first_visible()
        timeout_s = given.get("VisibilityTimeout", queue.visibility_timeout_s)
        message = None if message_id is None else self._receive(queue, message_id, timeout_s)
        if message is None:
            return {}
        record = event_record(message, queue_arn(queue.name))
        names = {"messageId": "MessageId", "receiptHandle": "ReceiptHandle", "md5OfBody": "MD5OfBody"}
        renamed = {name: record[given_name] for given_name, name in names.items()}
        return {"Messages": [{**renamed, "Body": record["body"], "Attributes": record["attributes"]}]}

    def _delete_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        self._messages(queue).delete(given["ReceiptHandle"])
        return {}

    def _change_message_visibility(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        timeout_s = given["VisibilityTimeout"]
        if not 0 <= timeout_s <= MAX_VISIBILITY_S:
            raise SqsError("InvalidParameterValue", f"VisibilityTimeout must be 0 to {MAX_VISIBILITY_S}")
        message = self._messages(queue).change_visibility(given["ReceiptHandle"], timeout_s)
        self._await_visibility(queue, message)
        return {}

    def _put(self, queue: Queue, body: str, delay_s: float) -> Message:
        now_s = self._timers.now_s()
        message = Message(body, now_s, now_s + delay_s, caller=current_cause().caller)
        self._messages(queue).put(message)
        self._await_visibility(queue, message)
        return message

    def _receive(self, queue: Queue, message_id: str, visibility_timeout_s: float) -> Message | None:
        """Receive a visible message; return None if it has moved to the dead-letter queue."""
        messages = self._messages(queue)
        message = messages.receive(message_id, visibility_timeout_s)
        if message is None or message.receives <= queue.max_receives:
            return message
        messages.delete(message.receipt_handle)
        target = self._queues().get(queue.dead_letter or "")
        if target is not None:
            self._put(target, message.body, 0)
        self._log(f"[{queue.name}] message dropped after {message.receives - 1} deliveries: {message.body}")
        return None

    def _await_visibility(self, queue: Queue, message: Message) -> None:
        """Deliver a message at the end of its visibility timeout, unless it is deleted or changed before."""
        if queue.reader is not None:
            self._timers.call_at(message.visible_s, lambda: self._deliver(queue, message))

    def _deliver(self, queue: Queue, expected: Message) -> None:
        present = self._messages(queue).get(expected.id)
        if queue.reader is None or present is None or present.visible_s != expected.visible_s:
            return
        if present.visible_s > self._timers.now_s():  # clocks differ: a timer counts monotonic time
            self._await_visibility(queue, present)
            return
        message = self._receive(queue, expected.id, queue.visibility_timeout_s)
        if message is None:
            return
        self._await_visibility(queue, message)
        event = {"Records": [event_record(message, queue_arn(queue.name))]}
        with caused_by("queue", message.caller):
            result = self._run(queue.reader, json.dumps(event).encode())
        if _is_processed(result, message.id):
            self._messages(queue).delete(message.receipt_handle)

    def _messages(self, queue: Queue) -> MessageQueue:
        with self._lock:
            return self._stored.setdefault(queue.name, MessageQueue(self._timers.now_s))


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
