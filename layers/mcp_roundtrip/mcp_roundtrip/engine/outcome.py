"""How a pass over a tool's body can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.run import Run


@dataclass(frozen=True, slots=True)
class Done:
    """The tool returned `value`."""

    value: Any


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The client has to answer `requests` (InputRequests, by key)."""

    requests: Mapping[str, Mapping[str, Any]]
    journal: Journal


@dataclass(frozen=True, slots=True)
class Shed:
    """Time is up, nothing is asked: the client retries with the state alone."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool, or the engine on its behalf, raised `error`."""

    error: BaseException


Outcome = Done | NeedsInput | Shed | Failed


def suspended(run: Run) -> NeedsInput | Shed:
    """The outcome of a run that was suspended."""
    journal = run.journal_now()
    if run.pending:
        return NeedsInput({key: pending.to_wire() for key, pending in run.pending.items()}, journal)
    return Shed(journal)
