"""What causes the next invocation in this thread: its trigger and its caller.

A context variable passes it through the services that start invocations: none of them needs to know what the
recorder needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mcp_roundtrip_tools.run.observation.records import Trigger


@dataclass(frozen=True, slots=True)
class Cause:
    """`caller` is the id of a request or an invocation."""

    trigger: Trigger = "direct"
    caller: str | None = None


_cause: ContextVar[Cause] = ContextVar("cause", default=Cause())  # noqa: B039 - it is immutable


def current_cause() -> Cause:
    """Return the cause of an invocation that starts now."""
    return _cause.get()


@contextmanager
def caused_by(trigger: Trigger, caller: str | None) -> Iterator[None]:
    """Set the cause until the block ends."""
    token = _cause.set(Cause(trigger, caller))
    try:
        yield
    finally:
        _cause.reset(token)
