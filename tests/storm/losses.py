"""How, and at which call, a worker process is lost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storm.function import OUT_OF_MEMORY


class End(StrEnum):
    """How a worker process ends, or pauses."""

    KILL = "SIGKILL"
    MEMORY = OUT_OF_MEMORY
    TIMEOUT = "timeout"
    STOP = "SIGSTOP"


@dataclass(frozen=True)
class Loss:
    """The loss of the process that makes the call number `place` (from 0, over all workers of the task).

    It is lost before the coordinator performs the call, or after; a process that is lost in a step, `after_s`
    after its beginning. The calls of heartbeats are counted on their own.
    """

    end: End
    place: int
    side: str = "before"
    after_s: float = 0.0
    in_heartbeat: bool = False
    """Whether it is lost in a call of its heartbeat."""
    stopped_s: float = 200.0
    """How long a process stops."""
