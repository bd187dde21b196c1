"""Measure what hooks add to a warm call."""

from collections.abc import Mapping

import measure
from tables import Target, table

CALLS = 100


def measure_hooks(calls: int = CALLS) -> Mapping[int, float]:
    """Return the microseconds of a warm call by the number of hooks."""
    found: Mapping[int, float] = measure.run_script("hooks.py", str(calls))["us"]
    return found


def us_per_hook(measured: Mapping[int, float]) -> float:
    """Return what one more hook adds. The first one also adds the object that all hooks of a pass share."""
    return (measured[10] - measured[1]) / 9


def hook_table(measured: Mapping[int, float]) -> str:
    rows = [(str(hooks), f"{us:.1f}", f"{us / measured[0]:.3f}") for hooks, us in measured.items()]
    return table("Warm tools/call by number of hooks, CPU time", ("hooks", "us", "/ none"), rows)


def hook_targets(measured: Mapping[int, float]) -> list[Target]:
    return [
        Target("first hook, us", measured[1] - measured[0], 5),
        Target("each further hook, us", us_per_hook(measured), 5),
    ]
