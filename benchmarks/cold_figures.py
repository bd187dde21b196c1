"""The rows of the benchmark of cold calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cold_processes import Sample

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
