"""The outcomes of a pass over a tool's function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.engine.journal import Journal

if TYPE_CHECKING:
    from mcp_roundtrip.engine.channels import Channel


@dataclass(frozen=True, slots=True)
class Done:
    """The function returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """The function, or the engine on its behalf, raised `error`."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """Somebody has to answer `requests` (InputRequest objects by key), which `channel` carries."""

    requests: Mapping[str, Mapping[str, Any]]
    journal: Journal
    channel: Channel = "client"


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The time is nearly over and nothing is outstanding: the client retries at once with the state."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class TaskRequested:
    """The call continues as a task that lives for `ttl_ms` milliseconds."""

    journal: Journal
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Sleeping:
    """The task has nothing to do until `wake_at_ms` (epoch milliseconds)."""

    wake_at_ms: int


@dataclass(frozen=True, slots=True)
class OwnershipLost:
    """The task was cancelled, or another worker took it over."""


Suspended = NeedsInput | Checkpointed | TaskRequested | Sleeping | OwnershipLost
Outcome = Done | Failed | Suspended
