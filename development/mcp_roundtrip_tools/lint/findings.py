"""What a rule reports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_roundtrip_tools.lint.contexts import Module


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


Check = Callable[["Module"], Iterator[tuple[ast.AST, str]]]
"""Returns the places of a module that break a rule, each with its message."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`title` is the heading of the rule in docs/reference/lint.md."""

    id: str
    title: str
    check: Check
