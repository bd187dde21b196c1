"""Rows of text, aligned; and targets with their verdicts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`value` may be at most `limit`."""

    title: str
    value: float
    limit: float
    unit: str = ""

    def row(self) -> tuple[str, str, str, str]:
        verdict = "PASS" if self.value <= self.limit else "FAIL"
        return verdict, self.title, f"{self.value:.3f}{self.unit}", f"at most {self.limit:g}{self.unit}"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A titled table; the first column is flush left, the others, being figures, flush right."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([title, aligned[0], "-" * len(aligned[0]), *aligned[1:], ""])


def targets(title: str, judged: Sequence[Target]) -> str:
    """The targets, one a line."""
    rows = [target.row() for target in judged]
    width = max(len(row[1]) for row in rows)
    return "\n".join([title, *(f"{v}  {t:<{width}}  {x:>10}  {limit}" for v, t, x, limit in rows)])
