"""Mistakes of authors with the exact error messages. The tables are in the modules of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip import AsyncContext, Context, DefinitionError, McpRoundtripError
from support.passes import AsyncPasses, Passes, error


@dataclass(frozen=True, slots=True)
class Case:
    """A function that makes a mistake."""

    name: str
    make: Callable[[], object]
    kind: type[McpRoundtripError]
    message: str


CASES: list[Case] = []

Mistake = Callable[[], object]


def mistakes(module: str, kind: type[McpRoundtripError], table: Mapping[str, tuple[Mistake, str]]) -> None:
    """Add mistakes to the table: name -> an expression that raises a `kind`, and its exact message."""
    section = module.rpartition(".")[2]
    for name, (make, message) in table.items():
        CASES.append(Case(f"{section}: {name}", make, kind, message))


def says(message: str, kind: type[McpRoundtripError] = DefinitionError) -> Callable[[Mistake], Mistake]:
    """Add a mistake to the table that raises a `kind` with exactly this message."""

    def add(make: Mistake) -> Mistake:
        name = f"{make.__module__.rpartition('.')[2]}: {make.__name__.replace('_', ' ')}"
        CASES.append(Case(name, make, kind, message))
        return make

    return add


def run(body: Callable[[Context], Any], answers: Mapping[str, Any] | None = None, **given: Any) -> None:
    """Run the body of a tool, and raise its exception."""
    raise error(Passes(body, **given)(**(answers or {})))


def run_async(body: Callable[[AsyncContext], Any], **given: Any) -> None:
    """Run the body of an async tool, and raise its exception."""
    raise error(AsyncPasses(body, **given)())
