"""Format aligned text tables, and targets with their verdicts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """An upper limit for a measured value."""

    title: str
    value: float
    limit: float

    def row(self) -> tuple[str, str, str, str]:
        """Return title, value, limit and verdict."""
        verdict = "PASS" if self.value <= self.limit else "FAIL"
        return self.title, f"{self.value:.3f}", f"{self.limit:.3g}", verdict


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table with a title. The first column is left-aligned, the others are right-aligned."""
    lines = [tuple(header), *map(tuple, rows)]
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    aligned = ["  ".join([line[0].ljust(first), *map(str.rjust, line[1:], others)]) for line in lines]
    return "\n".join([title, aligned[0], "-" * len(aligned[0]), *aligned[1:], ""])


def targets_table(targets: Iterable[Target]) -> str:
    """Format one target per line."""
    return table("Targets", ("", "value", "at most", ""), [target.row() for target in targets])
