"""`make bench`: speed and memory beside the peers, all measured in this run; about five minutes.

An argument names the revision that a plain call is compared with, see before.py.

Exit status 1 means that something could not be run. A target that is missed is printed as FAIL and changes
nothing: timings are noisy, and the reader knows what else the computer is doing.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import chain

import bearer
import before
import forwarding
import layer
import measure
import states
import tasks
from before import Compared
from measure import AWSLABS, MCP, OURS, Contender, Figures
from states import PYJWT, SDK, SIZES, ByName, States
from tables import Target, table, targets
from tasks import Tasks

FIRST_RUNS = 15
WARM_RUNS = 5
WARM_CALLS = 200
FORWARDED_FIRST_RUNS = 5
TOKEN_CALLS = 2_000
LENGTHS = (1, 10, 100, 1000)
STATE_COLD_RUNS = 3
STATE_WARM_CALLS = 400
TASK_RUNS = 5
TASK_COUNT = 100
TOOLS = 500
NOTIFICATIONS = 1000
BEFORE_FIRST_RUNS = 31
BEFORE_WARM_RUNS = 15
TWO_KB = list(SIZES).index("2 KB")

DISTRIBUTIONS = (
    "mcp-roundtrip",
    "mcp",
    "mangum",
    "awslabs.mcp-lambda-handler",
    "pydantic",
    "pyjwt",
    "cryptography",
    "boto3",
)

Measured = Mapping[Contender, Figures]
Replays = Mapping[str, Mapping[str, list[float]]]
"""Kind of step -> view -> milliseconds for each of LENGTHS."""
Comparison = Mapping[str, Compared]
Surface = Mapping[str, Mapping[str, float]]
"""Which request, "list" or "reports" -> "ms" and "kib"."""


def main(revision: str = before.REVISION) -> int:
    print(environment(), flush=True)
    try:
        measured = measure.figures(measure.CONTENDERS, FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        compared_with = comparison(revision)
        forwarded = forwarding.figures(FORWARDED_FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        tokens = bearer.figures(TOKEN_CALLS)
        surface: Surface = measure.process("surface.py", str(TOOLS), str(NOTIFICATIONS))
        replays: Replays = measure.process("replay.py", *map(str, LENGTHS))["replays"]
        sealed = states.figures(STATE_COLD_RUNS, STATE_WARM_CALLS)
        durable = tasks.figures(LENGTHS, TASK_RUNS, TASK_COUNT)
    except measure.DidNotRun as error:
        print(error, file=sys.stderr)
        return 1
    layers = layer.zipped_mib()
    print(*compared(measured), before_table(compared_with, revision), surface_table(surface), sep="\n")
    print(forwarding.forwarding_table(forwarded), bearer.bearer_table(tokens), sep="\n")
    print(replay_table(replays), state_table(sealed), sep="\n")
    print(*task_tables(durable), layer_table(layers), sep="\n")
    judged = (
        peer_targets(measured),
        before_targets(compared_with),
        forwarding.forwarding_targets(forwarded),
        bearer.bearer_targets(tokens),
        surface_targets(surface),
        replay_targets(replays, measured),
        state_targets(sealed),
        task_targets(durable),
        layer_targets(layers),
    )
    print(targets(chain.from_iterable(judged)))
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


# -- beside an earlier revision -------------------------------------------------------------------------


def comparison(revision: str) -> Comparison | str:
    """Or why there is none. Raises DidNotRun."""
    try:
        return before.figures(revision, BEFORE_FIRST_RUNS, BEFORE_WARM_RUNS, WARM_CALLS)
    except before.NoRevision as error:
        return str(error)


def before_table(compared: Comparison | str, revision: str) -> str:
    title = f"A plain call beside revision {revision[:12]}, in turns"
    if isinstance(compared, str):
        return table(title, ("", ""), [("skipped", compared)])
    names = {
        "first_ms": f"first response, ms, median of {BEFORE_FIRST_RUNS} turns",
        "warm_ms": f"warm tools/call, ms, median of {BEFORE_WARM_RUNS} turns with {WARM_CALLS} calls each",
        "peak_mib": f"peak resident memory, MiB, median of {BEFORE_WARM_RUNS} turns",
    }
    rows = [
        (name, f"{found.before:.4g}", f"{found.today:.4g}", f"{found.ratio:.3f}")
        for name, found in ((names[key], compared[key]) for key in names)
    ]
    return table(title, ("", "before", "today", "of before"), rows)


def before_targets(compared: Comparison | str) -> list[Target]:
    if isinstance(compared, str):
        return []
    return [
        Target("first response, of the earlier revision's", compared["first_ms"].ratio, 1.1),
        Target("warm tools/call, of the earlier revision's", compared["warm_ms"].ratio, 1.1),
    ]


# -- lists and notifications ----------------------------------------------------------------------------

SURFACE = {
    "list": f"list of {TOOLS} tools, warm, from the catalog",
    "reports": f"SSE answer with {NOTIFICATIONS} progress notifications",
}


def surface_table(measured: Surface) -> str:
    rows = [
        (title, f"{measured[name]['ms']:.3f}", f"{measured[name]['kib']:.0f}")
        for name, title in SURFACE.items()
    ]
    return table("Whole requests to a warm server", ("", "ms", "KiB"), rows)


def surface_targets(measured: Surface) -> list[Target]:
    limits = {"list": 2, "reports": 20}
    return [Target(f"{SURFACE[name]}, ms", measured[name]["ms"], limits[name]) for name in limits]


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


# -- requestState ---------------------------------------------------------------------------------------


def state_table(measured: States) -> str:
    """Each operation with each contender: warm, the first of a process, and how long the tokens are."""
    title = (
        "requestState by size of the state; KMS is another process on 127.0.0.1\n"
        f"warm, ms: medians of {STATE_WARM_CALLS} calls, around the same claims\n"
        f"first, ms: from the first import on, medians of {STATE_COLD_RUNS} fresh processes"
        " (late in an hour, encrypted, with one call more: for the next hour's key)"
    )
    rows = [
        *_state_rows("", measured.warm_ms, measured.warm_calls, ".3f"),
        *_state_rows("first ", measured.cold_ms, measured.cold_calls, ".0f"),
        *_state_rows("", measured.characters, {}, "d"),
    ]
    return table(title, ("", *SIZES, "2 KB, of the SDK's", "KMS calls"), rows)


def _state_rows(
    prefix: str, figures: ByName[Sequence[float]], kms_calls: ByName[float], spec: str
) -> Iterator[tuple[str, ...]]:
    for name in sorted(figures, key=lambda name: states.OPERATIONS.index(name[0])):
        operation, title = name
        ratio = figures[name][TWO_KB] / figures[operation, SDK][TWO_KB]
        yield (
            f"{prefix}{operation}, {title}",
            *(format(value, spec) for value in figures[name]),
            f"{ratio:.2f}",
            f"{kms_calls[name]:g}" if name in kms_calls else "-",
        )


def state_targets(measured: States) -> list[Target]:
    best, kms_calls = "delegated, encrypted", measured.warm_calls
    ms = {name: of_sizes[TWO_KB] for name, of_sizes in measured.warm_ms.items()}
    largest = {name: of_sizes[-1] for name, of_sizes in measured.warm_ms.items()}
    return [
        Target(f"mint ({best}, 2 KB), of the SDK's", ms["mint", best] / ms["mint", SDK], 4),
        Target(f"resume ({best}, 2 KB), of the SDK's", ms["resume", best] / ms["resume", SDK], 14),
        Target(
            f"forged ({best}, 2 KB), of the SDK's resume, claims included",
            ms["forged", best] / ms["resume", SDK],
            2,
        ),
        Target(f"resume ({best}, 20 KB), of PyJWT's decode", largest["resume", best] / largest[PYJWT], 1 / 3),
        Target("KMS calls in a delegated round", _most(kms_calls, "delegated", "mint", "resume"), 0),
        Target("KMS calls in a direct mint", _most(kms_calls, "direct", "mint"), 1),
        Target("KMS calls in a direct resume", _most(kms_calls, "direct", "resume"), 0),
    ]


def _most(kms_calls: ByName[float], signing: str, *operations: str) -> float:
    return max(
        sum(kms_calls[operation, title] for operation in operations)
        for title in states.CONFIGURATIONS
        if title.startswith(signing)
    )


# -- tasks ----------------------------------------------------------------------------------------------


def task_tables(measured: Tasks) -> tuple[str, ...]:
    """Calls, resumes and rates."""
    resume = (
        "Tasks: reading and replaying the journal in a resume, ms, by steps in it; without the two updates"
    )
    resumes = [(store, *(f"{ms:.3f}" for ms in costs)) for store, costs in measured.resume_ms.items()]
    return _call_table(measured), table(resume, ("", *map(str, LENGTHS)), resumes), _rate_table(measured)


def _call_table(measured: Tasks) -> str:
    kinds = ("GetItem", "PutItem", "UpdateItem", "TransactWriteItems", "Query")
    title = (
        f"Tasks: calls of DynamoDB; {measured.entries} entries are in the journal of the created task,"
        f" {measured.answers} answers in the update"
    )
    rows = [
        (operation, *(str(calls.get(kind, 0)) for kind in kinds), str(sum(calls.values())))
        for operation, calls in measured.calls.items()
    ]
    return table(title, ("", *kinds, "together"), rows)


def _rate_table(measured: Tasks) -> str:
    title = (
        f"Tasks per second, from call to result: {TASK_RUNS} processes with {TASK_COUNT} tasks each\n"
        f"{tasks.OURS}: stored over HTTP in an emulator; a worker process takes one after the other\n"
        f"{tasks.OURS_IN_MEMORY}: nothing outlives the process; the work is done while the call waits\n"
        f"{tasks.FASTMCP}: nothing outlives the process; its worker takes ten at a time, by default"
    )
    medians = tasks.medians(measured.rates)
    rows = [
        (
            name,
            *(f"{rate:.4g}" for rate in (medians[name], min(rates), max(rates))),
            f"{medians[name] / medians[tasks.FASTMCP]:.3f}",
        )
        for name, rates in measured.rates.items()
    ]
    return table(title, ("", "median", "slowest", "fastest", "of FastMCP"), rows)


def task_targets(measured: Tasks) -> list[Target]:
    calls = {operation: sum(kinds.values()) for operation, kinds in measured.calls.items()}
    answers = measured.answers
    return [
        Target(
            "DynamoDB calls to create, beyond journal and arguments",
            calls["create"] - measured.entries - 1,
            1,
        ),
        Target("DynamoDB calls of a poll", calls["poll"], 1),
        Target(f"DynamoDB calls of an update with {answers} answers", calls["update"], answers + 2),
        Target("DynamoDB calls of a resume", calls["resume"], 3),
        Target("DynamoDB calls of a resume with a journal of 2 MB", calls["resume, 2 MB"], 4),
    ]


# -- the layer ------------------------------------------------------------------------------------------


def layer_table(layers: Mapping[str, float]) -> str:
    rows = [(path, f"{mib:.2f}") for path, mib in layers.items()] or [("not built: run make build", "-")]
    return table("Built layer, zipped, MiB", ("", "MiB"), rows)


def layer_targets(layers: Mapping[str, float]) -> list[Target]:
    return [Target("largest layer, zipped, MB", max(layers.values()) * 2**20 / 1e6, 15)] if layers else []


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
