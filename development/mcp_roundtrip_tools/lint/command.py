"""Find code of tools that differs when a round is replayed: time, randomness, effects outside steps and more.

The code is read, never run. `# noqa: MRT001 reason` at the end of a line suppresses a finding in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.lint.checking import Finding, check_file
from mcp_roundtrip_tools.lint.rules import RULES
from mcp_roundtrip_tools.lint.source import ModuleError, Source, modules_in

FOLDERS = ("functions", "src")
"""Where functions are, if no file is named: in this project, and in a new application."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 1 with findings, 2 if something cannot be read."""
    parser = argparse.ArgumentParser(prog="mcp-roundtrip lint", description=__doc__)
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="FILE", help="modules or folders (default: functions, src)"
    )
    parser.add_argument("--rules", action="store_true", help="list the rules")
    given = parser.parse_args(arguments)
    if given.rules:
        print("\n".join(f"{rule.id}  {rule.title}" for rule in RULES))
        return 0
    paths = given.paths or [Path(name) for name in FOLDERS if Path(name).is_dir()]
    if not paths:
        print("error: there is no folder functions or src here: name files or folders", file=sys.stderr)
        return 2
    modules, empty = modules_in(paths)
    if modules and not given.paths:
        empty = []  # an application may have only one of the folders
    return _report(modules, empty)


def _report(modules: Sequence[Path], errors: Sequence[str]) -> int:
    """Print the findings of modules and what cannot be read; return the exit status."""
    findings: list[Finding] = []
    unread: list[str] = []
    loaded: dict[Path, Source | None] = {}
    for path in modules:
        try:
            findings += check_file(path, loaded)
        except ModuleError as error:
            unread.append(str(error))
    errors = [*errors, *unread]
    for message in errors:
        print(f"error: {message}", file=sys.stderr)
    for finding in findings:
        print(finding)
    if len(modules) > len(unread):
        summary = _summary(findings, len(modules) - len(unread))
        print(summary, file=sys.stderr if findings or errors else sys.stdout)
    return 2 if errors else int(bool(findings))


def _summary(findings: Sequence[Finding], modules: int) -> str:
    count = len(findings)
    found = f"{count} finding{'' if count == 1 else 's'}" if findings else "no findings"
    return f"{found} in {modules} module{'' if modules == 1 else 's'}"
