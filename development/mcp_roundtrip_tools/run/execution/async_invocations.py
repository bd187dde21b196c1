"""Lambda's asynchronous invocations: failed ones are repeated, and at last sent to a dead-letter queue.

Source: AWS Lambda developer guide, "How Lambda handles errors and retries with asynchronous invocation". An
invocation fails if the function raises an exception or times out, or if its process exits.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult
from mcp_roundtrip_tools.run.observation.records import caused_by, current_cause
from mcp_roundtrip_tools.run.timers import Timers
from mcp_roundtrip_tools.template.model import Function

RETRY_DELAYS_S: Final = (60.0, 120.0)
"""The seconds between a failed attempt and the next one. Lambda repeats an invocation at most twice."""


@dataclass(frozen=True, slots=True)
class AsyncInvocation:
    """An accepted invocation. Each attempt has the same request id.

    `caller` is the id of the invocation that requested it.
    """

    function: str
    payload: bytes
    qualifier: str | None
    client_context: str | None
    request_id: str
    attempts: int = 0
    caller: str | None = None


RunFunction = Callable[[str, bytes, str | None, str | None, str], InvocationResult]
"""Runs a function once: its name, the payload, the qualifier, the client context and the request id."""


class AsyncInvocations:
    """Runs accepted invocations, and repeats those that fail.

    `functions` returns the functions of the template by name. `send` puts a message into the queue with an
    ARN, and returns False if it does not exist. `retry_delay_scale` multiplies the delays of retries.
    """

    def __init__(
        self,
        functions: Callable[[], Mapping[str, Function]],
        run: RunFunction,
        send: Callable[[str, str], bool],
        timers: Timers,
        log: Callable[[str], None],
        retry_delay_scale: float = 1.0,
    ) -> None:
        self._functions = functions
        self._run = run
        self._send = send
        self._timers = timers
        self._log = log
        self._retry_delay_scale = retry_delay_scale

    def accept(self, function: str, payload: bytes, qualifier: str | None, client_context: str | None) -> str:
        """Queue an invocation, and return its request id."""
        request_id = str(uuid.uuid4())
        caller = current_cause().caller
        accepted = AsyncInvocation(function, payload, qualifier, client_context, request_id, caller=caller)
        self.deliver(accepted, self._timers.now_s())
        return request_id

    def deliver(self, invocation: AsyncInvocation, epoch_s: float) -> None:
        """Attempt an invocation at that time. Lambda sometimes delivers an event twice."""
        self._timers.call_at(epoch_s, lambda: self._attempt(invocation))

    def _attempt(self, invocation: AsyncInvocation) -> None:
        function = self._functions().get(invocation.function)
        if function is None:  # the template has changed
            return
        with caused_by("retry" if invocation.attempts else "async", invocation.caller):
            result = self._run(
                invocation.function,
                invocation.payload,
                invocation.qualifier,
                invocation.client_context,
                invocation.request_id,
            )
        if not result.failed:
            return
        attempted = replace(invocation, attempts=invocation.attempts + 1)
        if attempted.attempts > min(function.max_retries, len(RETRY_DELAYS_S)):
            self._discard(function, attempted)
            return
        delay_s = RETRY_DELAYS_S[attempted.attempts - 1] * self._retry_delay_scale
        self._log(f"[{function.name}] retry of {invocation.request_id} in {delay_s:g} s")
        self.deliver(attempted, self._timers.now_s() + delay_s)

    def _discard(self, function: Function, invocation: AsyncInvocation) -> None:
        self._log(f"[{function.name}] {invocation.request_id} discarded after {invocation.attempts} attempts")
        queue, event = function.dead_letter, invocation.payload.decode()
        if queue is not None and not self._send(queue, event):
            self._log(f"[{function.name}] {queue} is not emulated: {event}")
