"""Sum the time that the package's own modules take to import, from `python -X importtime`."""

from __future__ import annotations

import marshal
import os
import re
import subprocess
from pathlib import Path

import measure
from cpu_limits import interpreter_command
from measure import OURS, BenchmarkError

RUNS = 3

_OWN_MODULE = re.compile(
    r"^import time: +(?P<self_us>\d+) \| +\d+ \| +(?P<module>mcp_roundtrip(\.\S+)?)$", re.MULTILINE
)


def own_import_ms(path: tuple[Path, ...]) -> float:
    """Import a server with one plain tool, call it once, and return the self times of the package's modules.

    Of each module the shortest of RUNS times counts, because other load can only make it longer. The call is
    included because it imports modules, too. `path` is the import path. Raise BenchmarkError if it fails.
    """
    shortest: dict[str, int] = {}
    for _ in range(RUNS):
        for module, self_us in _self_times(path).items():
            shortest[module] = min(self_us, shortest.get(module, self_us))
    return sum(shortest.values()) / 1000


def _self_times(path: tuple[Path, ...]) -> dict[str, int]:
    """Return the microseconds of each of the package's modules."""
    variables = {**measure.ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, path))}
    script: list[str | Path] = [measure.HERE / "invocations.py", OURS.module, "1", "1"]  # figures to stdout
    found = subprocess.run(
        [*interpreter_command(), "-X", "importtime", *script],
        input=marshal.dumps(OURS.event),
        env=variables,
        capture_output=True,
        check=False,
    )
    report = found.stderr.decode()
    if found.returncode:
        raise BenchmarkError(f"{OURS.title} failed:\n{report[-2000:]}")
    return {match["module"]: int(match["self_us"]) for match in _OWN_MODULE.finditer(report)}
