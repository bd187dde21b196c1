"""The record of what happened: the newest requests and invocations, in memory."""

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    LogLine,
    Note,
    Printed,
    RecordedInvocation,
    Root,
    ServiceCall,
    current_cause,
    walk,
)

MAX_ROOTS: Final = 500
MAX_BYTES: Final = 256 * 1024 * 1024
"""The bodies and lines that are kept, in bytes."""

Listener = Callable[[Event], None]

_WAITED_FOR: Final = ("http", "invoke")
"""The triggers of invocations for which their caller waits."""


class RunRecorder:
    """Keeps the newest roots, and passes events to its listeners. Thread-safe. `run_id` is that of this run.

    Beyond `max_roots` or `max_bytes` the oldest are dropped, those that have ended first.
    """

    def __init__(
        self,
        *listeners: Listener,
        max_roots: int = MAX_ROOTS,
        max_bytes: int = MAX_BYTES,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self.run_id = str(uuid4())
        self.now_ms = now_ms
        self._listeners = listeners
        self._max_roots = max_roots
        self._max_bytes = max_bytes
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._sequence = 0
        self._roots: dict[str, Root] = {}
        self._invocations: dict[str, RecordedInvocation] = {}

    # What happens

    def begin_exchange(self, exchange: HttpExchange) -> None:
        """Record a request."""
        with self._lock:
            self._roots[exchange.id] = exchange
            self._touch(exchange, len(exchange.request.body))

    def end_exchange(self, exchange: HttpExchange, response: Response) -> None:
        """Record the response to a request."""
        with self._lock:
            exchange.response = response
            exchange.duration_ms = self.now_ms() - exchange.started_at_ms
            self._touch(exchange, len(response.body))
        self._tell(Ended(exchange))

    def begin_invocation(
        self,
        function: str,
        payload: bytes,
        request_id: str | None = None,
        *,
        environment_id: str,
        is_new_environment: bool,
    ) -> RecordedInvocation:
        """Record the start of an invocation, which belongs to a caller that waits for its result."""
        cause = current_cause()
        invocation = RecordedInvocation(
            request_id or str(uuid4()),
            function,
            environment_id,
            is_new_environment,
            cause.trigger,
            cause.caller,
            self.now_ms(),
            payload,
        )
        with self._lock:
            invocation.id = self._free_id(invocation.request_id)
            self._invocations[invocation.id] = invocation
            caller = self._caller_of(invocation)
            if caller is None:
                self._roots[invocation.id] = invocation
            else:
                invocation.root = caller.root
                caller.invocations.append(invocation)
            self._touch(invocation, len(payload))
        return invocation

    def end_invocation(
        self, invocation: RecordedInvocation, response: bytes, *, error: str | None, init_ms: float | None
    ) -> None:
        """Record the end of an invocation. `error` is None if it succeeded."""
        with self._lock:
            invocation.init_ms, invocation.response, invocation.error = init_ms, response, error
            invocation.duration_ms = self.now_ms() - invocation.started_at_ms
            self._touch(invocation, len(response))
        if invocation.root is invocation:
            self._tell(Ended(invocation))

    def add_service_call(self, invocation: RecordedInvocation, call: ServiceCall) -> None:
        """Record a call of an invocation to an AWS service."""
        with self._lock:
            invocation.service_calls.append(call)
            self._touch(invocation)

    def add_line(self, invocation: RecordedInvocation, text: str) -> None:
        """Record a line that a function printed during an invocation."""
        line = LogLine(self.now_ms(), text)
        with self._lock:
            lines = invocation.log_lines
            dropped = lines[0].text if len(lines) == lines.maxlen else ""
            lines.append(line)
            self._touch(invocation, len(text) - len(dropped))
        self._tell(Printed(invocation, line))

    def note(self, text: str) -> None:
        """Pass a note of the local runner to the listeners. It is not kept."""
        self._tell(Note(self.now_ms(), text))

    # What has happened

    def exchange(self, exchange_id: str) -> HttpExchange | None:
        """Return a request with its invocations; None if it is unknown or dropped."""
        found = self._roots.get(exchange_id)
        return found if isinstance(found, HttpExchange) else None

    def invocation(self, invocation_id: str) -> RecordedInvocation | None:
        """Return an invocation with those for which it waited; None if it is unknown or dropped."""
        return self._invocations.get(invocation_id)

    def invocations(self) -> tuple[RecordedInvocation, ...]:
        """Return all invocations in the order of their start."""
        with self._lock:
            return tuple(self._invocations.values())

    def background_invocations(self) -> tuple[RecordedInvocation, ...]:
        """Return the invocations for whose result nothing waits, in the order of their start."""
        with self._lock:
            return tuple(each for each in self._roots.values() if isinstance(each, RecordedInvocation))

    def changed_after(self, sequence: int) -> tuple[int, list[Root]]:
        """Return the present sequence number, and the roots that changed after `sequence`.

        A sequence number from another run returns everything.
        """
        with self._lock:
            if sequence > self._sequence:
                sequence = 0
            return self._sequence, [root for root in self._roots.values() if root.changed > sequence]

    def _caller_of(self, invocation: RecordedInvocation) -> Root | None:
        """Return the record that waits for an invocation; None if there is none."""
        if invocation.caller is None or invocation.trigger not in _WAITED_FOR:
            return None
        return self._invocations.get(invocation.caller) or self._roots.get(invocation.caller)

    def _free_id(self, wanted: str) -> str:
        number, found = 1, wanted
        while found in self._invocations:
            number += 1
            found = f"{wanted}#{number}"
        return found

    def _touch(self, record: Root, size: int = 0) -> None:
        """Note a change that adds `size` bytes. What happens below a dropped root is none."""
        root = record.root
        if root.id not in self._roots:
            return
        self._sequence += 1
        root.changed = self._sequence
        self._sizes[root.id] += size
        while len(self._roots) > 1 and (
            len(self._roots) > self._max_roots or self._sizes.total() > self._max_bytes
        ):
            self._drop()

    def _drop(self) -> None:
        """Drop the oldest root that has ended; if none has, the oldest."""
        ended = (root for root in self._roots.values() if root.duration_ms is not None)
        root = self._roots.pop(next(ended, next(iter(self._roots.values()))).id)
        del self._sizes[root.id]
        for invocation in walk(root):
            self._invocations.pop(invocation.id, None)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # a defect of a listener must not fail the request
                traceback.print_exc()
