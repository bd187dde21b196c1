"""Apply the rules to modules, and suppress findings by comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.rules import RULES, UNREASONED
from mcp_roundtrip_tools.lint.source import Source, read_module, reporting_errors

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
