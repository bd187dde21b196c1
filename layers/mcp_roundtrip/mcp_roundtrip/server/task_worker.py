"""The Lambda handler of a worker: one invocation works on one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_roundtrip.server.dispatch import ToolServer
from mcp_roundtrip.server.ports import Invocation, Ports
from mcp_roundtrip.server.tasks import TaskBody
from mcp_roundtrip.tasks.worker import Worker

LEASE_MARGIN_MS: Final = 5_000
"""How much longer than its invocation a worker keeps its lease: clocks differ."""

RESERVE: Final = 0.1
"""The last part of a worker's time, in which it begins nothing new: a step that outlasts it runs again."""


def work(server: ToolServer, event: Any, context: Any, make_ports: Callable[[], Ports]) -> None:
    """Work on the task that the event names. Raises StoreError, so that the delivery is tried again."""
    ports = make_ports()
    correlation_id = getattr(context, "aws_request_id", None) or "unknown"
    ports.observer.begin(correlation_id)
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    remaining_ms = 900_000 if remaining is None else int(remaining())
    invocation = Invocation(correlation_id, ports.clock_ms() + remaining_ms * (1 - RESERVE), context)
    port = ports.tasks()
    worker = Worker(
        port.store,
        port.dispatcher,
        TaskBody(server, ports, invocation),
        lambda: int(ports.clock() * 1000),
        lambda: ports.random_bytes(12).hex(),
    )
    worked = worker.work(str(event["task"]), remaining_ms + LEASE_MARGIN_MS)
    ports.observer.record("worked" if worked else "not_claimed", task=str(event["task"]).partition("#")[2])
