"""A plain call beside what it cost in an earlier revision, in turns: what is not used should cost nothing.

Both revisions lie in a temporary folder, and run with the dependencies that are installed now.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import measure
from measure import OURS, Contender, DidNotRun

REVISION = "905104c0ec4c2d16455f0799996a5b22eaab08f9"
"""The last one that served tools alone, without prompts, resources, completion and pages."""

ROOT = measure.HERE.parent
LAYER = Path("layers/mcp_roundtrip")
IMPORTED = "import mcp_roundtrip; print(mcp_roundtrip.__file__)"


class NoRevision(Exception):
    """There is nothing to compare with; the text says why."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians over all turns, in milliseconds or MiB; `ratio` is the median of today's to that before in one
    turn, since a busy moment hits both of a turn alike."""

    before: float
    today: float
    ratio: float


def figures(revision: str, first_runs: int, warm_runs: int, warm_calls: int) -> dict[str, Compared]:
    """Compare "first_ms", "warm_ms" and "peak_mib". Raises NoRevision and DidNotRun."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = (
            _contender(f"revision {revision}", _exported(revision, folder)),
            _contender("today", _copied(folder)),
        )
        for contender in pair:
            measure.run(contender, 1)  # leaves bytecode behind
        first = measure.in_turns(pair, first_runs, lambda contender: measure.run(contender, 1))
        warm = measure.in_turns(
            pair, warm_runs, lambda contender: measure.run(contender, measure.SETTLED + warm_calls)
        )
    return {
        "first_ms": _compared(pair, first, lambda sample: sample["first_ms"]),
        "warm_ms": _compared(pair, warm, lambda sample: median(sample["warm_ms"][measure.SETTLED - 1 :])),
        "peak_mib": _compared(pair, warm, lambda sample: sample["peak_kib"] / 1024),
    }


def _compared(
    pair: tuple[Contender, Contender],
    samples: Mapping[Contender, Sequence[Mapping[str, Any]]],
    figure: Callable[[Mapping[str, Any]], float],
) -> Compared:
    before, today = ([figure(sample) for sample in samples[contender]] for contender in pair)
    ratios = [now / then for then, now in zip(before, today, strict=True)]
    return Compared(median(before), median(today), median(ratios))


def _exported(revision: str, folder: Path) -> Path:
    """The layer as it was."""
    archive, layer = folder / "before.zip", folder / "before"
    command = ("git", "-C", ROOT, "archive", "--output", archive, revision, LAYER)
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise NoRevision("git is not installed") from None
    except subprocess.CalledProcessError as error:  # no checkout, or one without its history
        raise NoRevision(error.stderr.strip()) from None
    shutil.unpack_archive(archive, layer)
    return layer / LAYER


def _copied(folder: Path) -> Path:
    """The layer as it is: read from the same disk as the other, and edited by nobody meanwhile."""
    layer = folder / "today" / LAYER
    shutil.copytree(ROOT / LAYER, layer, ignore=shutil.ignore_patterns("__pycache__"))
    return layer


def _contender(title: str, layer: Path) -> Contender:
    """The contender over that layer. Raises DidNotRun if Python would import another one."""
    variables = {"PYTHONPATH": str(layer)}
    command = (sys.executable, "-c", IMPORTED)
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if not found.stdout.startswith(str(layer)):
        raise DidNotRun(f"{title} is at {layer}, Python imports {found.stdout or found.stderr}")
    return Contender(OURS.module, title, OURS.event, variables)
