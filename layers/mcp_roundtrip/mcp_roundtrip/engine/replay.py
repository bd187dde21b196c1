"""Drives one pass over a synchronous tool's body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip.engine.outcome import Done, Failed, Outcome, suspended
from mcp_roundtrip.engine.run import Run


def replay(function: Callable[..., Any], arguments: Mapping[str, Any], run: Run) -> Outcome:
    """Call `function` and say how the pass ended.

    A fault of the engine and a suspension decide the outcome even where the tool's own code swallowed the
    exception and went on.
    """
    outcome: Outcome
    try:
        outcome = Done(function(**arguments))
    except BaseException as error:  # Suspend, and sys.exit and its like: nothing may end the environment
        outcome = Failed(error)
    if run.fault is not None:
        return Failed(run.fault)
    return suspended(run) if run.ended else outcome
