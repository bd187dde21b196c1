"""Apply the rules to modules, and suppress findings by comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.findings import Finding
from mcp_roundtrip_tools.lint.rules import RULES, UNREASONED
from mcp_roundtrip_tools.lint.source import Source, read_module, reporting_errors

_NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)(?P<reason>[^#]*)")
_OURS = re.compile(r"MRT\d+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment in a line. `column` counts from 0."""

    line: int
    column: int
    rules: frozenset[str]
    reason: str


def suppressions(text: str) -> Iterator[Suppression]:
    """The comments of a module that name rules of this package."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        found = _NOQA.search(token.string)
        rules = frozenset(_OURS.findall(found["codes"])) if found else frozenset()
        if found and rules:
            yield Suppression(token.start[0], token.start[1], rules, found["reason"].strip(" -:()"))


def check_file(path: Path) -> list[Finding]:
    """Return the findings of a module in the order of its lines. Raises ModuleError."""
    with reporting_errors(path):
        return check_text(path, read_module(path))


def check_text(path: Path, text: str) -> list[Finding]:
    """Return the findings of a module in the order of its lines. Raises SyntaxError."""
    source = Source.parse(path, text)
    module = Module(source)
    comments = list(suppressions(text)) if "MRT" in text else []
    found = []
    used: set[tuple[int, str]] = set()
    for rule in RULES:
        for node, message in rule.check(module):
            line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            comment = _comment_for(source, node, rule.id, comments)
            if comment is None:
                found.append(Finding(path, line, column + 1, rule.id, message))
            else:
                used.add((comment.line, rule.id))
    found += _faults_of(path, comments, used)
    return sorted(set(found))


def _comment_for(
    source: Source, node: ast.AST, rule: str, comments: Sequence[Suppression]
) -> Suppression | None:
    lines = {getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)}
    statement = next((each for each in [node, *source.ancestors(node)] if isinstance(each, ast.stmt)), None)
    if statement is not None and not hasattr(statement, "body"):
        lines |= {statement.lineno, statement.end_lineno or statement.lineno}
    return next((each for each in comments if rule in each.rules and each.line in lines), None)


def _faults_of(path: Path, comments: Sequence[Suppression], used: set[tuple[int, str]]) -> Iterator[Finding]:
    for comment in comments:
        for rule in sorted(comment.rules):
            message = None
            if (comment.line, rule) not in used:
                message = f"nothing in this line breaks {rule}: remove the comment"
            elif not comment.reason:
                message = f"the comment gives no reason: write `# noqa: {rule} <reason>`"
            if message is not None:
                yield Finding(path, comment.line, comment.column + 1, UNREASONED.id, message)
