"""Try newer versions than those that are pinned, in copies of the project, and report. No file is edited.

    python -m newest [--all] [GROUP ...]

The groups are the MCP clients of the test matrix, the AI applications of `make hosts`, the conformance suite,
and the dependencies of the layer.
A group without a newer version is not run, except with `--all`. The exit status is 1 if a newer version
fails, and 2 if a registry does not answer.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Final

from newest.groups import GROUPS, Group, Registries, Source, Unresolvable, apply
from support.project import ROOT, copy_project

LOGS: Final = ROOT / ".cache/newest"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="newest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"only these: {', '.join(GROUPS)}")
    parser.add_argument("--all", action="store_true", help="try also groups without a newer version")
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - GROUPS.keys():
        parser.error(f"no group: {', '.join(sorted(unknown))}; the groups are {', '.join(GROUPS)}")
    registries = Registries(ROOT / ".venv-lock/bin/uv")
    results = [
        _report(name, group, registries, options.all)
        for name, group in GROUPS.items()
        if not options.groups or name in options.groups
    ]
    _summarize([line for lines, _ in results for line in lines])
    return max(status for _, status in results)


def _report(name: str, group: Group, registries: Registries, always: bool) -> tuple[list[str], int]:
    """Try a group. Return the lines of the report, and the exit status."""
    try:
        sources = group.sources(ROOT, registries)
    except Unresolvable as error:
        return [f"| {name} | | | not resolved: {' '.join(str(error).split())[:300]} |"], 2
    newer = [
        (package, source.pinned[package], version)
        for source in sources
        for package, version in source.newer().items()
    ]
    if not newer and not always:
        return [f"| {name} | | | every pin is the newest |"], 0
    log = LOGS / f"{name}.log"
    passed = _try(group, sources, log)
    outcome = "passes" if passed else f"fails: {log.relative_to(ROOT)}"
    rows = [f"| {package} | {pinned} | {version} | {outcome} |" for package, pinned, version in newer]
    return rows or [f"| {name} | | | {outcome} |"], 0 if passed else 1


def _try(group: Group, sources: Sequence[Source], log: Path) -> bool:
    """Run the command of a group in a copy of the project that has the newer versions."""
    log.parent.mkdir(parents=True, exist_ok=True)
    unset = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    with tempfile.TemporaryDirectory(prefix="newest-") as folder, log.open("w") as output:
        copy = copy_project(Path(folder))
        copytree(ROOT / "docs", copy / "docs")
        apply(copy, sources)
        print(f"Trying: {group.command}", flush=True)
        done = subprocess.run(
            group.command,
            shell=True,
            cwd=copy,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0


def _summarize(lines: Sequence[str]) -> None:
    """Print the report; on GitHub, also to the page of the run."""
    report = "\n".join(["| Package | Pinned | Newest | |", "|---|---|---|---|", *lines])
    print(report)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(report + "\n")


if __name__ == "__main__":
    sys.exit(main())
