"""Mistakes of authors, in the modules of this folder. `messages.json` has what each says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from mcp_roundtrip import AsyncContext, Context, DefinitionError, McpRoundtripError
from support.passes import AsyncPasses, Passes, error

Mistake = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A function that makes a mistake."""

    name: str
    make: Mistake
    kind: type[McpRoundtripError]

    @property
    def message(self) -> str:
        return self.raised[1]

    @cached_property
    def raised(self) -> tuple[type[McpRoundtripError], str]:
        """The type of the error that the mistake raises, and its text."""
        try:
            self.make()
        except self.kind as error:
            return type(error), str(error)
        raise AssertionError(f"{self.name}: no {self.kind.__name__}")


CASES: list[Case] = []


def all_cases() -> list[Case]:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        import_module(f"messages.{path.stem}")
    return CASES


def mistakes(module: str, kind: type[McpRoundtripError], table: Mapping[str, Mistake]) -> None:
    """Add mistakes to the table: name -> what raises a `kind`."""
    section = module.rpartition(".")[2]
    CASES.extend(Case(f"{section}: {name}", make, kind) for name, make in table.items())


def mistake(kind: type[McpRoundtripError] = DefinitionError) -> Callable[[Mistake], Mistake]:
    """Add a function to the table that raises a `kind`."""

    def add(make: Mistake) -> Mistake:
        mistakes(make.__module__, kind, {make.__name__.replace("_", " "): make})
        return make

    return add


def run(body: Callable[[Context], Any], answers: Mapping[str, Any] | None = None, **given: Any) -> None:
    """Run the body of a tool, and raise its exception."""
    raise error(Passes(body, **given)(**(answers or {})))


def run_async(body: Callable[[AsyncContext], Any], **given: Any) -> None:
    """Run the body of an async tool, and raise its exception."""
    raise error(AsyncPasses(body, **given)())
