"""The rules, by their ids: a module for each idea."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.rules import (
    awaits,
    effects,
    keys,
    module_state,
    nondeterminism,
    order_of_sets,
    suspension,
    tool_definitions,
)

Check = Callable[[Module], Iterator[tuple[ast.AST, str]]]
"""Returns the places of a module that break a rule, each with its message."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`title` is the heading of the rule in docs/reference/lint.md."""

    id: str
    title: str
    check: Check


UNREASONED: Final = Rule("MRT000", "A suppression without a reason or without a finding", lambda _: iter(()))
"""Its findings are those of comments, which `checking` reports."""

RULES: Final = (
    UNREASONED,
    Rule("MRT001", "Time or randomness outside the context", nondeterminism.check),
    Rule("MRT002", "The order of a set", order_of_sets.check),
    Rule("MRT003", "A missing await", awaits.check_missing),
    Rule("MRT004", "A needless await", awaits.check_needless),
    Rule("MRT005", "The context inside a step", suspension.check_steps),
    Rule("MRT006", "A side effect outside a step", effects.check),
    Rule("MRT007", "A handler that catches the end of a round", suspension.check_handlers),
    Rule("MRT008", "The same key in every turn of a loop", keys.check_loops),
    Rule("MRT009", "The same key twice", keys.check_twice),
    Rule("MRT010", "Module state that a tool changes", module_state.check),
    Rule("MRT011", "A race or a time limit", suspension.check_races),
    Rule("MRT012", "A form that is not flat", tool_definitions.check_forms),
    Rule("MRT013", "A tool without a description", tool_definitions.check_descriptions),
    Rule("MRT014", "A tool that models refuse", tool_definitions.check_limits),
)
