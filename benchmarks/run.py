"""Measure speed and memory, and compare them with other MCP servers (`make bench`, about eight minutes).

With a revision as argument, a plain call is compared with it, too (see earlier_revision.py).

The exit status is 1 if a measurement could not run. A missed target is printed as FAIL and does not change
the exit status, because timings depend on the load of the computer.
"""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from itertools import chain

import bearer_tokens
import cold_chain
import cold_tables
import earlier_revision
import forwarding
import layer_size
import measure
import revisions
import state_codecs
import task_figures
import warm_figures
from measure import AWSLABS, MCP, OURS, Figures, Implementation
from tables import Target, table, targets_table

FIRST_RUNS = 15
WARM_RUNS = 5
WARM_CALLS = 200
FORWARDED_FIRST_RUNS = 5
TOKEN_CALLS = 2_000
LENGTHS = (1, 10, 100, 1000)
"""Numbers of steps in a journal."""
TOOLS = 500
NOTIFICATIONS = 1000
FLOWS = 200
"""Calls that ask one question, for each channel."""

DISTRIBUTIONS = (
    "mcp-roundtrip",
    "mcp",
    "mangum",
    "awslabs.mcp-lambda-handler",
    "pydantic",
    "msgspec",
    "pyjwt",
    "cryptography",
    "boto3",
)

HandlerFigures = Mapping[Implementation, Figures]
Replays = Mapping[str, Mapping[str, list[float]]]
"""Kind of step -> "engine" or "complete round" -> milliseconds for each of LENGTHS."""
RequestFigures = Mapping[str, Mapping[str, float]]
"""Request, "list" or "notifications" -> "ms" and "kib"."""


def main(revision: str | None = None) -> int:
    print(environment(), flush=True)
    try:
        handlers = measure.measure_handlers(measure.IMPLEMENTATIONS, FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        cold = cold_chain.measure_cold_calls()
        comparison = earlier_revision.compare_with(revision) if revision else {}
        forwarded = forwarding.measure_forwarding(FORWARDED_FIRST_RUNS, WARM_RUNS, WARM_CALLS)
        tokens = bearer_tokens.measure_verification(TOKEN_CALLS)
        requests: RequestFigures = measure.run_script(
            "lists_and_notifications.py", str(TOOLS), str(NOTIFICATIONS)
        )
        questions: RequestFigures = measure.run_script("questions.py", str(FLOWS))
        replays: Replays = measure.run_script("replay.py", *map(str, LENGTHS))["replays"]
        warm = warm_figures.measure_warm_calls()
        states = state_codecs.measure_state_codecs()
        tasks = task_figures.measure_tasks(LENGTHS)
    except (measure.BenchmarkError, revisions.RevisionUnavailable) as error:
        print(error, file=sys.stderr)
        return 1
    layers = layer_size.zipped_mib()
    tables = (
        *handler_tables(handlers),
        *cold_tables.cold_tables(cold),
        *earlier_revision.comparison_tables(comparison, revision),
        request_table(requests),
        question_table(questions),
        forwarding.forwarding_table(forwarded),
        bearer_tokens.verification_table(tokens),
        replay_table(replays),
        *warm_figures.warm_tables(warm),
        state_codecs.state_table(states),
        *task_figures.task_tables(tasks, LENGTHS),
        layer_size.layer_size_table(layers),
    )
    print(*tables, sep="\n")
    targets = (
        handler_targets(handlers),
        cold_tables.cold_targets(cold),
        earlier_revision.comparison_targets(comparison),
        forwarding.forwarding_targets(forwarded),
        bearer_tokens.verification_targets(tokens),
        request_targets(requests),
        question_targets(questions),
        replay_targets(replays, handlers),
        warm_figures.warm_targets(warm),
        state_codecs.state_targets(states),
        task_figures.task_targets(tasks),
        layer_size.layer_size_targets(layers),
    )
    print(targets_table(chain.from_iterable(targets)))
    return 0


def environment() -> str:
    """Describe the computer and the installed versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in DISTRIBUTIONS)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    computer = (
        f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} CPUs, load {load}"
    )
    return f"{computer}\n{versions}\n"


# -- comparison with other servers ----------------------------------------------------------------------


def handler_tables(measured: HandlerFigures) -> tuple[str, ...]:
    """Format one table for each figure."""
    warm = f"median of {WARM_RUNS} processes with {WARM_CALLS} calls each"
    peak = f"after {measure.WARM_UP_CALLS} calls, median of {WARM_RUNS} processes"
    return (
        _handler_table(
            f"First response, ms: including imports, median of {FIRST_RUNS} fresh processes",
            measured,
            lambda figures: figures.first_ms,
        ),
        _handler_table(
            "First response including start and end of the process, ms", measured, lambda f: f.process_ms
        ),
        _handler_table(f"Warm tools/call, ms: {warm}", measured, lambda f: f.warm_ms),
        _handler_table(f"Peak resident memory, MiB: {peak}", measured, lambda f: f.peak_mib),
    )


def _handler_table(title: str, measured: HandlerFigures, value: Callable[[Figures], float]) -> str:
    rows = [
        (
            implementation.title,
            f"{value(figures):.4g}",
            f"{value(figures) / value(measured[MCP]):.3f}",
            f"{value(figures) / value(measured[AWSLABS]):.3f}",
        )
        for implementation, figures in measured.items()
    ]
    return table(title, ("", "median", "/ mcp + Mangum", "/ awslabs"), rows)


def handler_targets(measured: HandlerFigures) -> list[Target]:
    ours, mcp, awslabs = measured[OURS], measured[MCP], measured[AWSLABS]
    return [
        Target("first response / mcp + Mangum", ours.first_ms / mcp.first_ms, 0.15),
        Target("first response / awslabs", ours.first_ms / awslabs.first_ms, 0.60),
        Target("warm tools/call / mcp + Mangum", ours.warm_ms / mcp.warm_ms, 0.03),
        Target("peak memory / mcp + Mangum", ours.peak_mib / mcp.peak_mib, 0.35),
    ]


# -- lists and notifications ----------------------------------------------------------------------------

REQUESTS = {
    "list": f"list of {TOOLS} tools from a catalog",
    "notifications": f"SSE response with {NOTIFICATIONS} progress notifications",
}


def request_table(measured: RequestFigures) -> str:
    rows = [
        (title, f"{measured[name]['ms']:.3f}", f"{measured[name]['kib']:.0f}")
        for name, title in REQUESTS.items()
    ]
    return table("Complete requests to a warm server", ("", "ms", "KiB"), rows)


def request_targets(measured: RequestFigures) -> list[Target]:
    limits = {"list": 2, "notifications": 20}
    return [Target(f"{REQUESTS[name]}, ms", measured[name]["ms"], limits[name]) for name in limits]


# -- questions ------------------------------------------------------------------------------------------

QUESTIONS = {
    "client": "a form of the client",
    "app": "an App, without a task table",
    "app_parked": "an App, with a task table",
    "page": "a link to the question page",
}


def question_table(measured: RequestFigures) -> str:
    client = measured["client"]
    rows = [
        (
            title,
            f"{found['first_ms']:.3f}",
            f"{found['first_ms'] / client['first_ms']:.2f}",
            f"{found['flow_ms']:.3f}",
            f"{found['flow_ms'] / client['flow_ms']:.2f}",
            *(f"{found[name]:.0f}" for name in ("requests", "table_requests")),
            f"{found['kib']:.1f}",
        )
        for title, found in ((title, measured[name]) for name, title in QUESTIONS.items())
    ]
    title = (
        f"A question by channel, warm: the request that asks, and all requests to the result;"
        f" median of {FLOWS} flows, table in memory"
    )
    header = (
        "",
        "asks, ms",
        "/ client",
        "all, ms",
        "/ client",
        "requests",
        "DynamoDB requests",
        "KiB received",
    )
    return table(title, header, rows)


QUESTION_LIMITS = {"app": (1.25, 1.5, 0), "app_parked": (2, 2.5, 12), "page": (1.5, 2.5, 20)}
"""The request that asks, and all requests, relative to the client's form; the DynamoDB requests of a flow."""


def question_targets(measured: RequestFigures) -> list[Target]:
    client, targets = measured["client"], []
    for name, (asks, to_result, stored) in QUESTION_LIMITS.items():
        title, found = f"question by {QUESTIONS[name]}", measured[name]
        targets += [
            Target(f"{title}: asks / client", found["first_ms"] / client["first_ms"], asks),
            Target(f"{title}: all requests / client", found["flow_ms"] / client["flow_ms"], to_result),
            Target(f"{title}: DynamoDB requests", found["table_requests"], stored),
        ]
    return targets


# -- replay ---------------------------------------------------------------------------------------------


def replay_table(replays: Replays) -> str:
    rows = [
        (f"{kind}, {view}", *(f"{ms:.3f}" for ms in costs))
        for kind, views in replays.items()
        for view, costs in views.items()
    ]
    return table(
        "Replay, ms of CPU time, by number of steps in the journal",
        ("step results", *map(str, LENGTHS)),
        rows,
    )


def replay_targets(replays: Replays, measured: HandlerFigures) -> list[Target]:
    warm_ms, hundred = measured[MCP].warm_ms, LENGTHS.index(100)
    costs = {kind: views["engine"] for kind, views in replays.items()}
    return [
        *(
            Target(f"replay of 100 steps ({kind}) / warm mcp + Mangum call", ms[hundred] / warm_ms, 0.1)
            for kind, ms in costs.items()
        ),
        *(
            Target(f"time per step ({kind}), 1000 steps / 100 steps", _growth(ms), 1.1)
            for kind, ms in costs.items()
        ),
    ]


def _growth(costs: list[float]) -> float:
    """Return the slope at the longest journal divided by the slope before it: 1 means linear time."""
    slopes = [
        (costs[end] - costs[end - 1]) / (LENGTHS[end] - LENGTHS[end - 1])
        for end in (len(LENGTHS) - 1, len(LENGTHS) - 2)
    ]
    return slopes[0] / slopes[1]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
