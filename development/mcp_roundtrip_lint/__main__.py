"""Find code of tools that differs when a round is replayed: time, randomness, effects outside steps and more.

The code is read, never run. `# noqa: MRT001 reason` at the end of a line suppresses a finding in it.
"""

from __future__ import annotations

import argparse
import sys
import tokenize
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_lint.checking import check_text, modules_in
from mcp_roundtrip_lint.findings import Finding
from mcp_roundtrip_lint.rules import RULES

FOLDERS = ("functions", "src")
"""Where functions are, if no file is named: in this project, and in a new application."""


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_lint") -> int:
    """Run the command; return its exit status: 1 with findings, 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
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
    findings: list[Finding] = []
    modules = modules_in(paths)
    for path in modules:
        try:
            with tokenize.open(path) as file:  # in the encoding that the module declares
                text = file.read()
            findings += check_text(path, text)
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            print(f"error: {path} cannot be read: {error}", file=sys.stderr)
            return 2
        except RecursionError:
            print(
                f"error: {path} is nested too deeply: shorten its longest expression or elif", file=sys.stderr
            )
            return 2
    for finding in findings:
        print(finding)
    print(_summary(len(findings), len(modules)), file=sys.stderr if findings else sys.stdout)
    return 1 if findings else 0


def _summary(findings: int, modules: int) -> str:
    found = f"{findings} finding{'' if findings == 1 else 's'}" if findings else "no findings"
    return f"{found} in {modules} module{'' if modules == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
