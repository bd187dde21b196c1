"""SQS queues, and event source mappings that invoke functions with their messages, one at a time.

Sources: SQS API reference; Lambda developer guide, "Using Lambda with Amazon SQS". Emulators run functions by
themselves, so they cannot deliver to this runner's processes.
"""

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any, Final

from mcp_roundtrip_tools.run.execution.async_invocations import Timers
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest, RunFunction
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.records import caused_by, current_cause
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, respond_json
from mcp_roundtrip_tools.template.model import Queue, queue_arn

MAX_DELAY_S: Final = 900
MAX_VISIBILITY_S: Final = 43_200


@dataclass(slots=True, eq=False)
class Message:
    """A message that the invocation `caller` sent. Times are epoch seconds."""

    body: str
    sent_s: float
    visible_s: float
    caller: str | None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    receives: int = 0
    first_received_s: float = 0.0

    @property
    def receipt_handle(self) -> str:
        return f"{self.id}#{self.receives}"

    @property
    def attributes(self) -> dict[str, str]:
        return {
            "ApproximateReceiveCount": str(self.receives),
            "SentTimestamp": str(int(self.sent_s * 1000)),
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": str(int(self.first_received_s * 1000)),
        }

    def event_record(self, arn: str) -> dict[str, Any]:
        """Return the event record of a message that was just received."""
        return {
            "messageId": self.id,
            "receiptHandle": self.receipt_handle,
            "body": self.body,
            "attributes": self.attributes,
            "messageAttributes": {},
            "md5OfBody": _digest(self.body),
            "eventSource": "aws:sqs",
            "eventSourceARN": arn,
            "awsRegion": arn.split(":")[3],
        }


@dataclass(frozen=True, slots=True)
class Queues:
    """Answers requests, and delivers each message to the reader of its queue until the reader succeeds."""

    queues: Callable[[], Mapping[str, Queue]]
    run: RunFunction
    log: Callable[[str], None]
    timers: Timers
    _lock: threading.RLock = field(init=False, default_factory=threading.RLock)
    _stored: dict[str, dict[str, Message]] = field(init=False, default_factory=dict)

    def respond(self, request: Request) -> Response:
        return respond_json(lambda: self._answer(request), "1.0")

    def send(self, arn: str, body: str) -> bool:
        """Send a message to the queue with this ARN; return False if the template has none."""
        queue = self.queues().get(arn.rpartition(":")[2])
        if queue is None or arn != queue_arn(queue.name):
            return False
        self._put(queue, body, 0)
        return True

    def _answer(self, request: Request) -> dict[str, Any]:
        operations: Mapping[str, Callable[[Queue, Mapping[str, Any]], dict[str, Any]]] = {
            "SendMessage": self._send_message,
            "ReceiveMessage": self._receive_message,
            "DeleteMessage": self._delete_message,
            "ChangeMessageVisibility": self._change_message_visibility,
        }
        name = (request.header("x-amz-target") or "").rpartition(".")[2]
        if name not in operations:  # such as GetQueueUrl, which has no QueueUrl
            raise _fault("UnsupportedOperation", f"{name!r} is not emulated: {', '.join(operations)} are")
        given = json.loads(request.body)
        queue = self.queues().get(str(given["QueueUrl"]).rpartition("/")[2])
        if queue is None:
            raise _fault("QueueDoesNotExist", "The specified queue does not exist.")
        return operations[name](queue, given)

    def _send_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        delay_s = given.get("DelaySeconds", 0)
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise _fault("InvalidParameterValue", f"DelaySeconds must be 0 to {MAX_DELAY_S}")
        message = self._put(queue, given["MessageBody"], delay_s)
        return {"MessageId": message.id, "MD5OfMessageBody": _digest(message.body)}

    def _receive_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        timeout_s = given.get("VisibilityTimeout", queue.visibility_timeout_s)
        with self._lock:
            now_s = self.timers.now_s()
            visible = next((each for each in self._messages(queue).values() if each.visible_s <= now_s), None)
            message = None if visible is None else self._receive(queue, visible, timeout_s)
            if message is None:
                return {}
            members = {"MessageId": message.id, "ReceiptHandle": message.receipt_handle, "Body": message.body}
            more = {"MD5OfBody": _digest(message.body), "Attributes": message.attributes}
            return {"Messages": [{**members, **more}]}

    def _delete_message(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        self._delete(queue, given["ReceiptHandle"])
        return {}

    def _change_message_visibility(self, queue: Queue, given: Mapping[str, Any]) -> dict[str, Any]:
        timeout_s = given["VisibilityTimeout"]
        if not 0 <= timeout_s <= MAX_VISIBILITY_S:
            raise _fault("InvalidParameterValue", f"VisibilityTimeout must be 0 to {MAX_VISIBILITY_S}")
        with self._lock:
            message, now_s = self._find(queue, given["ReceiptHandle"]), self.timers.now_s()
            if message is None:
                raise _fault("ReceiptHandleIsInvalid", "The receipt handle has expired.")
            if message.visible_s <= now_s:
                raise _fault("MessageNotInflight", "The message is not in flight.")
            message.visible_s = now_s + timeout_s
            self._await_visibility(queue, message)
        return {}

    def _messages(self, queue: Queue) -> dict[str, Message]:
        """Return the messages of a queue by id, in the order in which they were sent."""
        return self._stored.setdefault(queue.name, {})

    def _put(self, queue: Queue, body: str, delay_s: float) -> Message:
        now_s = self.timers.now_s()
        message = Message(body, now_s, now_s + delay_s, current_cause().caller)
        with self._lock:
            self._messages(queue)[message.id] = message
            self._await_visibility(queue, message)
        return message

    def _find(self, queue: Queue, receipt_handle: str) -> Message | None:
        message = self._messages(queue).get(receipt_handle.partition("#")[0])
        return message if message is not None and message.receipt_handle == receipt_handle else None

    def _delete(self, queue: Queue, receipt_handle: str) -> None:
        """Delete a message. Do nothing if it was received again since: SQS may not delete it either."""
        with self._lock:
            if message := self._find(queue, receipt_handle):
                del self._messages(queue)[message.id]

    def _receive(self, queue: Queue, message: Message, visibility_timeout_s: float) -> Message | None:
        """Receive a visible message; return None if it has moved to the dead-letter queue."""
        now_s = self.timers.now_s()
        message.receives += 1
        message.visible_s = now_s + visibility_timeout_s
        message.first_received_s = message.first_received_s or now_s
        if message.receives <= queue.max_receives:
            return message
        self._delete(queue, message.receipt_handle)
        target = self.queues().get(queue.dead_letter or "")
        if target is not None:
            self._put(target, message.body, 0)
        self.log(f"[{queue.name}] message dropped after {message.receives - 1} deliveries: {message.body}")
        return None

    def _await_visibility(self, queue: Queue, message: Message) -> None:
        """Deliver a message at the end of its visibility timeout, unless it is deleted or changed before."""
        if queue.reader is not None:
            expected_s = message.visible_s
            self.timers.call_at(expected_s, lambda: self._deliver(queue, message, expected_s))

    def _deliver(self, queue: Queue, message: Message, expected_s: float) -> None:
        with self._lock:
            if self._messages(queue).get(message.id) is not message or message.visible_s != expected_s:
                return
            if expected_s > self.timers.now_s():  # clocks differ: a timer counts monotonic time
                self._await_visibility(queue, message)
                return
            if self._receive(queue, message, queue.visibility_timeout_s) is None:
                return
            self._await_visibility(queue, message)
            handle = message.receipt_handle
            event = {"Records": [message.event_record(queue_arn(queue.name))]}
        assert queue.reader is not None
        with caused_by("queue", message.caller):
            result = self.run(InvokeRequest(queue.reader, json.dumps(event).encode()))
        if _is_processed(result, message.id):
            self._delete(queue, handle)


def _fault(code: str, message: str) -> ServiceFault:
    return ServiceFault(f"com.amazonaws.sqs#{code}", message)


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
