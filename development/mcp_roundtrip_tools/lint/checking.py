"""Find code of tools that differs when a round is replayed: time, randomness, effects outside steps and more.

The code is read, never run. `# noqa: MRT001 reason` at the end of a line suppresses a finding in it.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.parsed_module import (
    ModuleError,
    Source,
    modules_in,
    read_module,
    reporting_errors,
)
from mcp_roundtrip_tools.lint.rules import RULES, UNREASONED

_NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)(?P<reason>[^#]*)")
_OURS = re.compile(r"MRT\d+")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A place that breaks a rule. `column` counts from 1, as editors do."""

    path: Path
    line: int
    column: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.rule} {self.message}"


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment at the end of a line, for one rule. `column` counts from 0."""

    line: int
    column: int
    rule: str
    reason: str


def suppressions(text: str) -> Iterator[Suppression]:
    """The comments of a module that name rules of this package."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := _NOQA.search(token.string)):
            for rule in _OURS.findall(found["codes"]):
                yield Suppression(*token.start, rule, found["reason"].strip(" -:()"))


def check_file(path: Path, loaded: dict[Path, Source | None] | None = None) -> list[Finding]:
    """Return a module's findings by line. `loaded` are modules that others import. Raises ModuleError."""
    with reporting_errors(path):
        return check_text(path, read_module(path), loaded)


def check_text(path: Path, text: str, loaded: dict[Path, Source | None] | None = None) -> list[Finding]:
    """Return the findings of a module in the order of its lines. Raises SyntaxError."""
    source = Source(path, ast.parse(text, str(path)), {} if loaded is None else loaded)
    module = Module(source)
    unused = dict.fromkeys(suppressions(text)) if "MRT" in text else {}
    comments, found = [*unused], []
    for rule in RULES:
        for node, message in rule.check(module):
            line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            lines = _lines_of(source, node)
            comment = next((each for each in comments if each.rule == rule.id and each.line in lines), None)
            if comment is None:
                found.append(Finding(path, line, column + 1, rule.id, message))
            else:
                unused.pop(comment, None)
    for each in comments:
        message = ""
        if each in unused:
            message = f"nothing in this line breaks {each.rule}: remove the comment"
        elif not each.reason:
            message = f"the comment gives no reason: write `# noqa: {each.rule} <reason>`"
        if message:
            found.append(Finding(path, each.line, each.column + 1, UNREASONED.id, message))
    return sorted(set(found))


def _lines_of(source: Source, node: ast.AST) -> set[int]:
    """Return the lines whose comments apply: where the node and its simple statement begin and end."""
    statement = next((each for each in [node, *source.ancestors(node)] if isinstance(each, ast.stmt)), node)
    nodes = [node] if hasattr(statement, "body") else [node, statement]
    return {getattr(each, name, 0) for each in nodes for name in ("lineno", "end_lineno")}


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
