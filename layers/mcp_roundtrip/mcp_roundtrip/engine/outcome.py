"""The outcomes of a pass over a tool's function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcp_roundtrip.journal import Journal

if TYPE_CHECKING:
    from mcp_roundtrip.engine.channels import Channel


class Done(Struct, frozen=True):
    """The function returned `value`."""

    value: Any


class Failed(Struct, frozen=True):
    """The function, or the engine on its behalf, raised `error`."""

    error: BaseException


class NeedsInput(Struct, frozen=True):
    """Somebody has to answer `requests` (InputRequest objects by key), which `channel` carries."""

    requests: Mapping[str, Mapping[str, Any]]
    journal: Journal
    channel: Channel = "client"


class Checkpointed(Struct, frozen=True):
    """The time is nearly over and nothing is outstanding: the client retries at once with the state."""

    journal: Journal


class TaskRequested(Struct, frozen=True):
    """The call continues as a task that lives for `ttl_ms` milliseconds."""

    journal: Journal
    ttl_ms: int


class Sleeping(Struct, frozen=True):
    """The task has nothing to do until `wake_at_ms` (epoch milliseconds)."""

    wake_at_ms: int


class OwnershipLost(Struct, frozen=True):
    """The task was cancelled, or another worker took it over."""


Suspended = NeedsInput | Checkpointed | TaskRequested | Sleeping | OwnershipLost
Outcome = Done | Failed | Suspended

OutcomeName = Literal["complete", "input_required", "checkpoint", "task", "sleep", "lease_lost"]

_NAMES: Final[Mapping[type, OutcomeName]] = {
    Done: "complete",
    NeedsInput: "input_required",
    Checkpointed: "checkpoint",
    TaskRequested: "task",
    Sleeping: "sleep",
    OwnershipLost: "lease_lost",
}


def outcome_name(outcome: Done | Suspended) -> OutcomeName:
    """Return the name of an outcome that is no failure, as hooks and spans have it."""
    return _NAMES[type(outcome)]
