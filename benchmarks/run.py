"""`make bench`: speed and memory beside the peers, all measured in this run; about two minutes.

Exit status 1 means that something could not be run. A target that is missed is printed as FAIL and changes
nothing: timings are noisy, and the reader knows what else the computer is doing.
"""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version

import layer
import measure
from measure import AWSLABS, MCP, OURS, Contender, Figures
from tables import Target, table, targets

FIRST_RUNS = 15
WARM_RUNS = 5
WARM_CALLS = 200
LENGTHS = (1, 10, 100, 1000)

DISTRIBUTIONS = ("mcp-roundtrip", "mcp", "mangum", "awslabs.mcp-lambda-handler", "pydantic")

Measured = Mapping[Contender, Figures]
Replays = Mapping[str, Mapping[str, list[float]]]
"""Kind of step -> view -> milliseconds for each of LENGTHS."""


def main() -> int:
    print(environment(), flush=True)
    try:
        measured = measure.figures(FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        replays: Replays = measure.process("replay.py", *map(str, LENGTHS))["replays"]
    except measure.DidNotRun as error:
        print(error, file=sys.stderr)
        return 1
    layers = layer.zipped_mib()
    print(*compared(measured), replay_table(replays), layer_table(layers), sep="\n")
    print(targets([*peer_targets(measured), *replay_targets(replays, measured), *layer_targets(layers)]))
    return 0


def environment() -> str:
    """What the figures depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in DISTRIBUTIONS)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    computer = (
        f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} CPUs, load {load}"
    )
    return f"{computer}\n{versions}\n"


# -- beside the peers -----------------------------------------------------------------------------------


def compared(measured: Measured) -> tuple[str, ...]:
    """One table for each figure."""
    warm = f"median of {WARM_RUNS} processes with {WARM_CALLS} calls each"
    peak = f"after {measure.SETTLED} calls, median of {WARM_RUNS} processes"
    return (
        _compared(
            f"First response, ms: from the first import on, median of {FIRST_RUNS} fresh processes",
            measured,
            lambda figures: figures.first_ms,
        ),
        _compared("The same with start and end of the process, ms", measured, lambda f: f.process_ms),
        _compared(f"Warm tools/call, ms: {warm}", measured, lambda f: f.warm_ms),
        _compared(f"Peak resident memory, MiB: {peak}", measured, lambda f: f.peak_mib),
    )


def _compared(title: str, measured: Measured, value: Callable[[Figures], float]) -> str:
    rows = [
        (
            contender.title,
            f"{value(figures):.4g}",
            f"{value(figures) / value(measured[MCP]):.3f}",
            f"{value(figures) / value(measured[AWSLABS]):.3f}",
        )
        for contender, figures in measured.items()
    ]
    return table(title, ("", "median", "of mcp + Mangum", "of awslabs"), rows)


def peer_targets(measured: Measured) -> list[Target]:
    ours, mcp, awslabs = measured[OURS], measured[MCP], measured[AWSLABS]
    return [
        Target("first response, of mcp + Mangum", ours.first_ms / mcp.first_ms, 0.30),
        Target("first response, of awslabs", ours.first_ms / awslabs.first_ms, 1.15),
        Target("warm tools/call, of mcp + Mangum", ours.warm_ms / mcp.warm_ms, 0.03),
        Target("peak memory, of mcp + Mangum", ours.peak_mib / mcp.peak_mib, 0.6),
    ]


# -- replay ---------------------------------------------------------------------------------------------


def replay_table(replays: Replays) -> str:
    rows = [
        (f"{kind}, {view.replace('_', ' ')}", *(f"{ms:.3f}" for ms in costs))
        for kind, views in replays.items()
        for view, costs in views.items()
    ]
    return table("Replay, ms, by steps in the journal", ("results of steps", *map(str, LENGTHS)), rows)


def replay_targets(replays: Replays, measured: Measured) -> list[Target]:
    warm_ms, hundred = measured[MCP].warm_ms, LENGTHS.index(100)
    costs = {kind: views["engine"] for kind, views in replays.items()}
    return [
        *(
            Target(f"replay of 100 steps ({kind}), of a warm mcp + Mangum call", ms[hundred] / warm_ms, 0.1)
            for kind, ms in costs.items()
        ),
        *(
            Target(f"a step ({kind}) among 1000, of one among 100", _growth(ms), 1.25)
            for kind, ms in costs.items()
        ),
    ]


def _growth(costs: list[float]) -> float:
    """What a further step costs in the longest journal, beside one in the next shorter: 1 is linear."""
    slopes = [
        (costs[end] - costs[end - 1]) / (LENGTHS[end] - LENGTHS[end - 1])
        for end in (len(LENGTHS) - 1, len(LENGTHS) - 2)
    ]
    return slopes[0] / slopes[1]


# -- the layer ------------------------------------------------------------------------------------------


def layer_table(layers: Mapping[str, float]) -> str:
    rows = [(path, f"{mib:.2f}") for path, mib in layers.items()] or [("not built: run make build", "-")]
    return table("Built layer, zipped, MiB", ("", "MiB"), rows)


def layer_targets(layers: Mapping[str, float]) -> list[Target]:
    return [Target("largest layer, zipped, MB", max(layers.values()) * 2**20 / 1e6, 15)] if layers else []


if __name__ == "__main__":
    sys.exit(main())
