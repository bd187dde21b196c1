"""The messages of one queue: visibility timeouts, receipt handles and receive counts.

Source: Amazon SQS developer guide, "Amazon SQS visibility timeout" and "Using dead-letter queues".
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace


class InvalidReceiptHandle(Exception):
    """The receipt handle is not that of the last receive."""


class MessageNotInFlight(Exception):
    """The message is visible, so its visibility cannot be changed."""


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
        """Hide a message that is in flight for `timeout_s` from now.

        Raises InvalidReceiptHandle and MessageNotInFlight.
        """
        with self._lock:
            message, now_s = self._find(receipt_handle), self._now_s()
            if message is None:
                raise InvalidReceiptHandle
            if message.visible_s <= now_s:
                raise MessageNotInFlight
            changed = self._messages[message.id] = replace(message, visible_s=now_s + timeout_s)
            return changed

    def _find(self, receipt_handle: str) -> Message | None:
        message = self._messages.get(receipt_handle.partition("#")[0])
        return message if message is not None and message.receipt_handle == receipt_handle else None
