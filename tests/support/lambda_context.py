"""The context object of a Lambda invocation."""

from collections.abc import Mapping
from itertools import count
from types import SimpleNamespace
from typing import Any

from mcp_roundtrip_testing import FakeClock

_NUMBERS = count()


class LambdaContext:
    """A context with `remaining_ms` left on this clock. `custom` is what a front door sent.

    Each has a request id of its own. Lambda repeats a failed asynchronous invocation with the same one.
    """

    def __init__(
        self,
        clock: FakeClock | None = None,
        remaining_ms: float = 900_000,
        custom: Mapping[str, Any] | None = None,
        aws_request_id: str | None = None,
    ) -> None:
        self._clock = clock or FakeClock()
        self._deadline_ms = self._clock.monotonic_ms() + remaining_ms
        self.aws_request_id = aws_request_id or f"request-{next(_NUMBERS)}"
        self.client_context = None if custom is None else SimpleNamespace(custom=custom)

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(self._deadline_ms - self._clock.monotonic_ms()))
