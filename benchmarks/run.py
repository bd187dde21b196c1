"""`make bench`: speed and memory beside the peers, all measured in this run; about two minutes.

Exit status 1 means that something could not be run. A target that is missed is printed as FAIL and changes
nothing: timings are noisy, and the reader knows what else the computer is doing.
"""

import os
import platform
import sys
from importlib.metadata import version
from itertools import pairwise

import layer
import measure
import replay
from measure import AWSLABS, BARE, CONTENDERS, MCP, OURS, Contender, Figures
from tables import Target, table, targets

FIRST_RUNS = 15
WARM_RUNS = 5
WARM_CALLS = 200

DISTRIBUTIONS = ("mcp-roundtrip", "mcp", "mangum", "awslabs.mcp-lambda-handler", "pydantic")

Measured = dict[Contender, Figures]
Replays = dict[str, dict[str, list[float]]]


def main() -> int:
    print(_where(), flush=True)
    try:
        measured = measure.figures(FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        replays: Replays = measure.process("replay.py")
    except measure.DidNotRun as error:
        print(error, file=sys.stderr)
        return 1
    layers = layer.zipped_mib()
    for text in (*_speed(measured), _replays(replays), _layers(layers)):
        print(text)
    print(targets("Targets", [*_ratios(measured), *_replay_targets(replays, measured), *_layer_targets(layers)]))
    return 0


def _where() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in DISTRIBUTIONS)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} CPUs, load {load}\n"
        f"{versions}\n"
    )


def _speed(measured: Measured) -> tuple[str, str, str]:
    return (
        table(
            f"First response of a fresh process (median of {FIRST_RUNS}; from before the first import)",
            ("", "ms", "of mcp + Mangum", "whole process, ms"),
            [
                (c.title, f"{f.first_ms:.1f}", f"{f.first_ms / measured[MCP].first_ms:.2f}", f"{f.process_ms:.0f}")
                for c, f in measured.items()
            ],
        ),
        table(
            f"Warm tools/call (median of {WARM_RUNS} processes x {WARM_CALLS} calls)",
            ("", "ms", "of mcp + Mangum"),
            [
                (c.title, f"{f.warm_ms:.4f}", f"{f.warm_ms / measured[MCP].warm_ms:.3f}")
                for c, f in measured.items()
            ],
        ),
        table(
            f"Peak resident memory after {measure.SETTLED} calls (median of {WARM_RUNS})",
            ("", "MiB", "of mcp + Mangum"),
            [
                (c.title, f"{f.peak_mib:.1f}", f"{f.peak_mib / measured[MCP].peak_mib:.2f}")
                for c, f in measured.items()
            ],
        ),
    )
