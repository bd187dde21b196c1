"""Measure what traces add to a warm call."""

from collections.abc import Mapping

import measure
from tables import Target, table

CALLS = 100


def measure_traces(calls: int = CALLS) -> Mapping[str, float]:
    """Return the microseconds of a warm call with traces off and on."""
    found: Mapping[str, float] = measure.run_script("traces.py", str(calls))["us"]
    return found


def trace_table(measured: Mapping[str, float]) -> str:
    rows = [(name, f"{us:.1f}", f"{us / measured['off']:.3f}") for name, us in measured.items()]
    return table("Warm tools/call with traces (two spans), CPU time", ("traces", "us", "/ off"), rows)


def trace_targets(measured: Mapping[str, float]) -> list[Target]:
    return [Target("traces of a call, us", measured["on"] - measured["off"], 400)]
