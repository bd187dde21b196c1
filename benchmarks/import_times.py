"""Sum the time that the package's own modules take to import, from `python -X importtime`."""

from __future__ import annotations

import marshal
import os
import subprocess
from pathlib import Path

import measure
from cpu_limits import interpreter_command
from measure import OURS, BenchmarkError

PACKAGE = "mcp_roundtrip"


def own_import_ms(path: tuple[Path, ...]) -> float:
    """Import a server with one plain tool, call it once, and return the self times of the package's modules.

    The call is included because it imports modules, too. `path` is the import path. Raise BenchmarkError if
    the call fails.
    """
    variables = {**measure.ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, path))}
    script: list[str | Path] = [
        measure.HERE / "invocations.py",
        OURS.module,
        "1",
        "1",
    ]  # one call, figures to stdout
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
    return sum(_own_self_us(line) for line in report.splitlines()) / 1000


def _own_self_us(line: str) -> int:
    """Return the self time of a line of the report, or 0 for another module's."""
    self_us, _, name = line.removeprefix("import time:").split("|") if line.count("|") == 2 else ("0", "", "")
    module = name.strip()
    return int(self_us) if module == PACKAGE or module.startswith(f"{PACKAGE}.") else 0
