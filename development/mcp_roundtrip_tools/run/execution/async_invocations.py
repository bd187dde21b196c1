"""Lambda's asynchronous invocations: failed ones are repeated, and at last sent to a dead-letter queue.

Source: AWS Lambda developer guide, "How Lambda handles errors and retries with asynchronous invocation". An
invocation fails if the function raises an exception or times out, or if its process exits.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest, RunFunction
from mcp_roundtrip_tools.run.observation.records import caused_by, current_cause
from mcp_roundtrip_tools.template.model import Function


class Timers(Protocol):
    """A clock with timers. Tests replace it by one that they advance."""

    def now_s(self) -> float:
        """Return the time in epoch seconds."""

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        """Call `action` in another thread at that time, or at once if it has passed."""


class RealTimers:
    """The clock of this computer. `close` cancels the calls that have not begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[threading.Timer] = set()
        self._closed = False

    def now_s(self) -> float:
        return time.time()

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        def call() -> None:
            with self._lock:
                self._waiting.discard(timer)
            action()

        timer = threading.Timer(max(0.0, epoch_s - time.time()), call)
        timer.daemon = True
        with self._lock:
            if not self._closed:
                self._waiting.add(timer)
                timer.start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for timer in self._waiting:
                timer.cancel()


RETRY_DELAYS_S: Final = (60.0, 120.0)
"""The seconds between a failed attempt and the next one. Lambda repeats an invocation at most twice."""


@dataclass(frozen=True, slots=True)
class AsyncInvocations:
    """Runs accepted invocations, and repeats those that fail, after delays times `retry_delay_scale`.

    `send` puts a message into the queue with an ARN, and returns False if it does not exist.
    """

    functions: Callable[[], Mapping[str, Function]]
    run: RunFunction
    send: Callable[[str, str], bool]
    timers: Timers
    log: Callable[[str], None]
    retry_delay_scale: float = 1.0

    def accept(self, invocation: InvokeRequest) -> None:
        """Queue an invocation."""
        self.deliver(invocation, self.timers.now_s(), caller=current_cause().caller)

    def deliver(
        self, invocation: InvokeRequest, epoch_s: float, *, attempts: int = 0, caller: str | None = None
    ) -> None:
        """Attempt an invocation at that time. Lambda sometimes delivers an event twice.

        `attempts` have failed before. `caller` is the id of the invocation that requested it.
        """
        self.timers.call_at(epoch_s, lambda: self._attempt(invocation, attempts, caller))

    def _attempt(self, invocation: InvokeRequest, attempts: int, caller: str | None) -> None:
        function = self.functions().get(invocation.function)
        if function is None:  # the template has changed
            return
        with caused_by("retry" if attempts else "async", caller):
            result = self.run(invocation)
        if not result.failed:
            return
        if attempts >= min(function.max_retries, len(RETRY_DELAYS_S)):
            self._discard(function, invocation, attempts + 1)
            return
        delay_s = RETRY_DELAYS_S[attempts] * self.retry_delay_scale
        self.log(f"[{function.name}] retry of {invocation.request_id} in {delay_s:g} s")
        at_s = self.timers.now_s() + delay_s
        self.deliver(invocation, at_s, attempts=attempts + 1, caller=caller)

    def _discard(self, function: Function, invocation: InvokeRequest, attempts: int) -> None:
        self.log(f"[{function.name}] {invocation.request_id} discarded after {attempts} attempts")
        queue, event = function.dead_letter, invocation.payload.decode()
        if queue is not None and not self.send(queue, event):
            self.log(f"[{function.name}] {queue} is not emulated: {event}")
