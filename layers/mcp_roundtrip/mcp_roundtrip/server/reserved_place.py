"""Reserve a place among the open tasks of a caller, for a call that is certain to need one.

Such a call is refused before it runs, also while others run: each of them has its place already.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.server.model import FeatureCall


def with_place(call: FeatureCall) -> FeatureCall:
    """Return the call with a place, which lapses at the deadline. Raises TooManyOpenTasks and StoreError."""
    if call.place is not None:
        return call
    context = call.context
    ports, tasks = context.ports, context.ports.tasks().tasks
    remaining_ms = max(0, int(context.invocation.deadline_ms - ports.clock_ms()))
    principal, lapses_at_ms = caller_binding(context.principal), tasks.clock_ms() + remaining_ms
    return replace(call, place=tasks.limit.reserve(principal, lapses_at_ms, ports.random_bytes(9)))


def release_place(call: FeatureCall) -> None:
    """Give the call's place back, unless its task has taken it."""
    place, context = call.place, call.context
    if place is None or place.is_taken:
        return
    with suppress(StoreError):  # it lapses
        context.ports.tasks().tasks.limit.release(caller_binding(context.principal), place)
