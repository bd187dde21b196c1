"""Measure cold calls as Lambda runs them, and compare them with an earlier revision and with other servers.

    python benchmarks/cold_chain.py [--turns N] [--only TEXT]

The figures do not include the start of the microVM, the download of the code and the network.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import revisions
from cold_calls import forwarded_call, list_tools, plain_call, whole_chain
from cold_processes import ColdLambda, Sample, cold_lambda
from cpu_limits import MB_OF_ONE_VCPU, cpu_limits
from earlier_revision import RevisionUnavailable
from import_times import own_import_ms
from measure import AWSLABS, HERE, JSON_ONLY, MCP, OURS, BenchmarkError
from revisions import NOW, Deployment
from tables import Target, table, targets_table

REVISION = "71cca3bfad243720d26a13fd2b04ed1b0f11b6e1"
"""The last revision before cold calls were measured."""
CATALOG_OF_REVISION = "mcp_roundtrip.local.catalog"

TURNS = 5
SIZES_MB = (512, 1024, MB_OF_ONE_VCPU)

CHAIN, CHAIN_OF_TEMPLATE = "whole chain, {} MB", "whole chain, memory of template.yaml"
FORWARDED, LISTED = "front door, forwarded call", "front door, tools/list"
LIMITS = {CHAIN.format(MB_OF_ONE_VCPU): 0.45, CHAIN_OF_TEMPLATE: 0.35, FORWARDED: 0.4}
"""Row -> the most that a call may take, relative to the earlier revision."""
PEER_LIMITS = {MCP: 0.24, AWSLABS: 0.90}
OWN_IMPORT_LIMIT = 20 / 56
"""20 ms on a computer on which the earlier revision takes 56 ms."""


@dataclass(frozen=True, slots=True)
class Row:
    """Programs that are compared. Each turn takes one sample of each."""

    title: str
    programs: Mapping[str, Callable[[], Sample]]
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def take(self, turn: int) -> None:
        """Take one sample of each program, in alternating order."""
        for name in self.programs if turn % 2 else reversed(tuple(self.programs)):
            self.samples.setdefault(name, []).append(self.programs[name]())

    def total_ms(self, name: str) -> list[float]:
        return [sample.total_ms for sample in self.samples[name]]

    def cpu_ms(self, name: str) -> list[float]:
        return [sample.cpu_ms for sample in self.samples[name]]


@dataclass(frozen=True, slots=True)
class ColdFigures:
    """The rows that were measured. `limits` says how the CPU time was limited."""

    limits: str
    turns: int
    revisions: Sequence[Row]
    own_import: Row
    peers: Row


def measure_cold_calls(turns: int = TURNS, only: str = "") -> ColdFigures:
    """Measure the rows whose title contains `only`. Raise BenchmarkError."""
    with (
        tempfile.TemporaryDirectory() as name,
        cpu_limits(folder := Path(name)) as limits,
        cold_lambda(limits) as lambda_,
    ):
        deployed = _deploy(folder)
        rows = _revision_rows(lambda_, deployed)
        own_import, peers = _own_import_row(deployed), _peer_row(lambda_, deployed[-1], folder)
        for turn in range(turns):
            for row in (*rows, own_import, peers):
                if only in row.title:
                    row.take(turn)
        return ColdFigures(limits.title, turns, [row for row in rows if row.samples], own_import, peers)


def _deploy(folder: Path) -> tuple[Deployment, ...]:
    """Deploy the earlier revision, unless git does not have it, and the working tree."""
    now = revisions.deploy_now(folder)
    try:
        return revisions.deploy_revision(REVISION, CATALOG_OF_REVISION, folder), now
    except RevisionUnavailable as error:
        print(f"cold calls are not compared with {REVISION[:7]}: {error}", file=sys.stderr)
        return (now,)


def _revision_rows(lambda_: ColdLambda, deployed: Sequence[Deployment]) -> list[Row]:
    def row(title: str, call: Callable[..., Sample], *sizes_mb: int) -> Row:
        return Row(title, {each.title: partial(call, lambda_, each, *sizes_mb) for each in deployed})

    rows = [row(CHAIN.format(mb), whole_chain, mb, mb) for mb in SIZES_MB if lambda_.limits.supports(mb)]
    if lambda_.limits.has_quotas:
        own_sizes = {
            each.title: partial(whole_chain, lambda_, each, each.front_door_mb, each.tool_mb)
            for each in deployed
        }
        rows.append(Row(CHAIN_OF_TEMPLATE, own_sizes))
    return [*rows, row(FORWARDED, forwarded_call), row(LISTED, list_tools)]


def _own_import_row(deployed: Sequence[Deployment]) -> Row:
    def sample(path: tuple[Path, ...]) -> Sample:
        return Sample({"import": own_import_ms(path)}, 0)

    return Row("import of mcp_roundtrip", {each.title: partial(sample, each.path) for each in deployed})


def _peer_row(lambda_: ColdLambda, now: Deployment, folder: Path) -> Row:
    shutil.copytree(HERE / "implementations", folder / "peers" / "implementations")
    revisions.compile_bytecode(folder / "peers")
    peers = revisions.installed((HERE / "requirements.txt").read_text(encoding="utf-8"))
    paths = {JSON_ONLY: now.path[-1:], OURS: now.path, MCP: (peers,), AWSLABS: (peers,)}
    return Row(
        "plain tool",
        {
            each.title: partial(plain_call, lambda_, each, folder / "peers", (*path, now.path[-1]))
            for each, path in paths.items()
        },
    )


# -- report ---------------------------------------------------------------------------------------------


def cold_tables(figures: ColdFigures) -> list[str]:
    tables = []
    if figures.revisions:
        tables += [_revision_table(figures), _stage_table(figures)]
    if figures.own_import.samples:
        tables.append(_own_import_table(figures.own_import))
    if figures.peers.samples:
        tables.append(_peer_table(figures))
    return tables


def _ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios within a turn, because other load affects both values of a turn."""
    return median(value / other for value, other in zip(values, others, strict=True))


def _revision_table(figures: ColdFigures) -> str:
    title = (
        f"Cold calls, from the start of the first process to the response; {figures.limits},"
        f" one vCPU unless the row says otherwise; median of {figures.turns} turns"
    )
    rows = []
    for row in figures.revisions:
        earlier, now = next(iter(row.programs)), NOW
        cells = [
            cell
            for values in (row.total_ms, row.cpu_ms)
            for cell in (
                f"{median(values(earlier)):.0f}",
                f"{median(values(now)):.0f}",
                f"{_ratio(values(now), values(earlier)):.3f}",
            )
        ]
        rows.append((row.title, *cells))
    before = REVISION[:7]
    header = ("", f"{before}, ms", "now, ms", "ratio", f"{before}, CPU ms", "now, CPU ms", "ratio")
    return table(title, header, rows)


def _stage_table(figures: ColdFigures) -> str:
    """Format the stages of the longest calls of this revision."""
    stages = list(dict.fromkeys(stage for row in figures.revisions for stage in row.samples[NOW][0].stages))
    rows = []
    for row in figures.revisions:
        samples = [sample.stages for sample in row.samples[NOW]]
        found = [median(each[stage] for each in samples) if stage in samples[0] else None for stage in stages]
        rows.append((row.title, *("" if ms is None else f"{ms:.0f}" for ms in found)))
    return table("Stages of these calls now, ms", ("", *stages), rows)


def _own_import_table(row: Row) -> str:
    title = "Import of mcp_roundtrip by a server with one plain tool and its first call, ms, no CPU limit"
    earlier = next(iter(row.programs))
    found = (row.total_ms(earlier), row.total_ms(NOW))
    cells = (*(f"{median(values):.1f}" for values in found), f"{_ratio(*reversed(found)):.3f}")
    return table(title, ("", REVISION[:7], "now", "ratio"), [("self times, -X importtime", *cells)])


def _peer_table(figures: ColdFigures) -> str:
    title = (
        "First response of a plain tool, without a front door, ms; the same limit, turns and runtime client"
    )
    own = _without_runtime(figures.peers)
    rows = [
        (
            name,
            f"{median(figures.peers.total_ms(name)):.0f}",
            *(
                ()
                if name == JSON_ONLY.title
                else (
                    f"{median(values):.0f}",
                    *(f"{_ratio(values, own[each.title]):.3f}" for each in PEER_LIMITS),
                )
            ),
        )
        for name, values in own.items()
    ]
    header = ("", "all", f"without {JSON_ONLY.title}", *(f"/ {each.title}" for each in PEER_LIMITS))
    return table(title, header, [(*row, *[""] * (len(header) - len(row))) for row in rows])


def _without_runtime(peers: Row) -> dict[str, list[float]]:
    """Return the times without those of a handler that imports only json: interpreter and runtime client."""
    runtime = peers.total_ms(JSON_ONLY.title)
    return {
        name: [ms - base for ms, base in zip(peers.total_ms(name), runtime, strict=True)]
        for name in peers.programs
    }


def cold_targets(figures: ColdFigures) -> list[Target]:
    """Return the targets of the rows that were measured and can be compared."""
    targets = [
        Target(f"cold: {row.title} / {REVISION[:7]}", _compared(row), LIMITS[row.title])
        for row in figures.revisions
        if row.title in LIMITS and len(row.programs) > 1
    ]
    own_import = figures.own_import
    if len(own_import.samples) > 1:
        title = f"cold: {own_import.title} / {REVISION[:7]}"
        targets.append(Target(title, _compared(own_import), OWN_IMPORT_LIMIT))
    if figures.peers.samples:
        own = _without_runtime(figures.peers)
        targets += [
            Target(f"cold: plain tool / {each.title}", _ratio(own[OURS.title], own[each.title]), limit)
            for each, limit in PEER_LIMITS.items()
        ]
    return targets


def _compared(row: Row) -> float:
    return _ratio(row.total_ms(NOW), row.total_ms(next(iter(row.programs))))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="samples of each figure (default: %(default)s)"
    )
    parser.add_argument("--only", default="", help="measure only rows whose title contains this text")
    given = parser.parse_args()
    try:
        figures = measure_cold_calls(given.turns, given.only)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    print(*cold_tables(figures), targets_table(cold_targets(figures)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
