"""Compare a plain call with the same call in an earlier revision.

Features that a call does not use should not make it slower.
The calls are interleaved. Both revisions run from a temporary folder, each with its own dependencies.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import measure
import revisions
from measure import OURS, BenchmarkError, Implementation
from tables import Target, table

FIRST_RUNS, WARM_RUNS, WARM_CALLS = 31, 15, 200

PRINT_PACKAGE_PATH = "import mcp_roundtrip; print(mcp_roundtrip.__file__)"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians over all turns, in milliseconds or MiB.

    `ratio` is the median of the ratios within a turn, because other load affects both values of a turn
    equally.
    """

    before: float
    now: float
    ratio: float


def compare_with(
    revision: str, first_runs: int = FIRST_RUNS, warm_runs: int = WARM_RUNS, warm_calls: int = WARM_CALLS
) -> dict[str, Comparison]:
    """Compare "first_ms", "warm_ms" and "peak_mib". Raise RevisionUnavailable or BenchmarkError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = (
            _make_implementation(
                f"revision {revision}", revisions.export(revision, folder), folder / "before"
            ),
            _make_implementation("now", revisions.ROOT, folder / "now"),
        )
        for implementation in pair:
            measure.run_handler(implementation, 1)  # writes the bytecode caches
        first = measure.interleave(pair, first_runs, lambda each: measure.run_handler(each, 1))
        warm = measure.interleave(
            pair,
            warm_runs,
            lambda each: measure.run_handler(each, measure.WARM_UP_CALLS + warm_calls),
        )
    return {
        "first_ms": _compared(pair, first, lambda sample: sample["first_ms"]),
        "warm_ms": _compared(
            pair, warm, lambda sample: median(sample["warm_ms"][measure.WARM_UP_CALLS - 1 :])
        ),
        "peak_mib": _compared(pair, warm, lambda sample: sample["peak_kib"] / 1024),
    }


def _compared(
    pair: tuple[Implementation, Implementation],
    samples: Mapping[Implementation, Sequence[Mapping[str, Any]]],
    figure: Callable[[Mapping[str, Any]], float],
) -> Comparison:
    before, now = ([figure(sample) for sample in samples[implementation]] for implementation in pair)
    ratios = [new / old for old, new in zip(before, now, strict=True)]
    return Comparison(median(before), median(now), median(ratios))


def _make_implementation(title: str, source: Path, folder: Path) -> Implementation:
    """Copy the layer, so that edits have no effect, and return an implementation that uses it.

    Raise BenchmarkError if Python imports another layer.
    """
    package = folder / "layer"
    revisions.copy_sources(source / revisions.LAYER / "mcp_roundtrip", package / "mcp_roundtrip")
    path = (package, revisions.installed_dependencies(source / revisions.LAYER))
    variables = {"PYTHONPATH": os.pathsep.join(map(str, path))}
    command = (sys.executable, "-c", PRINT_PACKAGE_PATH)
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if not found.stdout.startswith(str(package)):
        raise BenchmarkError(f"{title}: Python imports {found.stdout or found.stderr} instead of {package}")
    return Implementation(OURS.module, title, OURS.event, variables)


# -- report ---------------------------------------------------------------------------------------------


def comparison_tables(compared: Mapping[str, Comparison], revision: str | None) -> tuple[str, ...]:
    """Format the comparison, if there is one."""
    if not compared:
        return ()
    title = f"Plain call compared with revision {revision}, interleaved"
    names = {
        "first_ms": f"first response, ms, median of {FIRST_RUNS} turns",
        "warm_ms": f"warm tools/call, ms, median of {WARM_RUNS} turns with {WARM_CALLS} calls each",
        "peak_mib": f"peak resident memory, MiB, median of {WARM_RUNS} turns",
    }
    rows = [
        (name, f"{found.before:.4g}", f"{found.now:.4g}", f"{found.ratio:.3f}")
        for name, found in ((names[key], compared[key]) for key in names)
    ]
    return (table(title, ("", "before", "now", "now / before"), rows),)


def comparison_targets(compared: Mapping[str, Comparison]) -> list[Target]:
    if not compared:
        return []
    return [
        Target("first response / earlier revision", compared["first_ms"].ratio, 1.1),
        Target("warm tools/call / earlier revision", compared["warm_ms"].ratio, 1.1),
    ]
