"""The rows of the benchmark of cold calls, as tables and compared with the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from cold_processes import Sample
from cpu_limits import MB_OF_ONE_VCPU
from measure import AWSLABS, JSON_ONLY, MCP, OURS
from revisions import NOW
from tables import Target, table

CHAIN, CHAIN_OF_TEMPLATE = "whole chain, {} MB", "whole chain, memory of template.yaml"
FORWARDED, LISTED = "front door, forwarded call", "front door, tools/list"


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

    @property
    def first(self) -> str:
        """The name of the first program, with which the others are compared."""
        return next(iter(self.programs))

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


# -- tables and targets ----------------------------------------------------------------------------------

LIMITS = {CHAIN.format(MB_OF_ONE_VCPU): 0.45, CHAIN_OF_TEMPLATE: 0.35, FORWARDED: 0.4}
"""Row -> the most that a call may take, relative to the earlier revision."""

OWN_IMPORT_LIMIT = 20 / 56
"""20 ms on a computer on which the earlier revision takes 56 ms."""

PEER_LIMITS = {MCP: 0.24, AWSLABS: 0.90}


def cold_tables(figures: ColdFigures) -> list[str]:
    """Format the rows that were measured."""
    tables = []
    if figures.revisions:
        tables += [_revision_table(figures), _stage_table(figures)]
    if figures.own_import.samples:
        tables.append(_own_import_table(figures.own_import))
    if figures.peers.samples:
        tables.append(_peer_table(figures))
    return tables


def cold_targets(figures: ColdFigures) -> list[Target]:
    """Return the targets of the rows that were measured, and can be compared."""
    targets = [
        Target(f"cold: {row.title} / {row.first}", _ratio(row.total_ms(NOW), row.total_ms(row.first)), limit)
        for row in (*figures.revisions, figures.own_import)
        if (limit := {**LIMITS, figures.own_import.title: OWN_IMPORT_LIMIT}.get(row.title)) is not None
        and len(row.samples) > 1
    ]
    if figures.peers.samples:
        own = _without_runtime(figures.peers)
        targets += [
            Target(f"cold: plain tool / {each.title}", _ratio(own[OURS.title], own[each.title]), limit)
            for each, limit in PEER_LIMITS.items()
        ]
    return targets


def _ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios within a turn, because other load affects both values of a turn."""
    return median(value / other for value, other in zip(values, others, strict=True))


def _comparison(values: Sequence[float], earlier: Sequence[float], digits: int = 0) -> tuple[str, str, str]:
    before, now = (f"{median(each):.{digits}f}" for each in (earlier, values))
    return before, now, f"{_ratio(values, earlier):.3f}"


def _revision_table(figures: ColdFigures) -> str:
    earlier = figures.own_import.first
    title = (
        f"Cold calls, from the start of the first process to the response; {figures.limits},"
        f" one vCPU unless the row says otherwise; median of {figures.turns} turns"
    )
    rows = [
        (
            row.title,
            *_comparison(row.total_ms(NOW), row.total_ms(earlier)),
            *_comparison(row.cpu_ms(NOW), row.cpu_ms(earlier)),
        )
        for row in figures.revisions
    ]
    header = ("", f"{earlier}, ms", "now, ms", "ratio", f"{earlier}, CPU ms", "now, CPU ms", "ratio")
    return table(title, header, rows)


def _stage_table(figures: ColdFigures) -> str:
    stages = list(dict.fromkeys(stage for row in figures.revisions for stage in row.samples[NOW][0].stages))
    rows = []
    for row in figures.revisions:
        samples = [sample.stages for sample in row.samples[NOW]]
        found = [median(each[stage] for each in samples) if stage in samples[0] else None for stage in stages]
        rows.append((row.title, *("" if ms is None else f"{ms:.0f}" for ms in found)))
    return table("Stages of these calls now, ms", ("", *stages), rows)


def _own_import_table(row: Row) -> str:
    title = "Import of mcp_roundtrip by a server with one plain tool and its first call, ms, no CPU limit"
    cells = _comparison(row.total_ms(NOW), row.total_ms(row.first), digits=1)
    return table(title, ("", row.first, NOW, "ratio"), [("self times, -X importtime", *cells)])


def _peer_table(figures: ColdFigures) -> str:
    title = "First response of a plain tool without a front door, ms; the same limits and turns"
    own = _without_runtime(figures.peers)
    rows = []
    for name, values in own.items():
        ratios = [f"{_ratio(values, own[each.title]):.3f}" for each in PEER_LIMITS]
        compared = (f"{median(values):.0f}", *ratios) if name != JSON_ONLY.title else ("", "", "")
        whole, cpu = (f"{median(each(name)):.0f}" for each in (figures.peers.total_ms, figures.peers.cpu_ms))
        rows.append((name, whole, *compared, cpu))
    header = ("", "all", f"without {JSON_ONLY.title}", *(f"/ {each.title}" for each in PEER_LIMITS), "CPU ms")
    return table(title, header, rows)


def _without_runtime(peers: Row) -> dict[str, list[float]]:
    """Return the times without those of a handler that imports only json: interpreter and runtime client."""
    runtime = median(peers.total_ms(JSON_ONLY.title))
    return {name: [ms - runtime for ms in peers.total_ms(name)] for name in peers.programs}
