"""The functions of a module that have a context, and what they call on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from mcp_roundtrip_tools.lint.definitions import called_function
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes, parameters

QUESTIONS: Final = frozenset({"elicit", "confirm", "elicit_url", "sample", "list_roots", "request", "ask"})
VALUES: Final = frozenset({"now", "uuid", "random", "signed_link"})
"""Calls that are recorded, and never end a round."""

ENDING: Final = QUESTIONS | {"step", "run_as_task", "sleep", "checkpoint", "gather"}
"""Calls that can end a round: what stands before them runs again."""

NOTIFICATIONS: Final = frozenset({"progress", "log"})
RECORDED: Final = ENDING | VALUES
AWAITABLE: Final = RECORDED | NOTIFICATIONS
KEYED: Final = (QUESTIONS - {"ask"}) | VALUES | {"step", "sleep"}
"""Calls whose first argument is a key."""

HELPER: Final = "(helper)"
"""Stands for the method in the call of a function that gets the context, and can end the round with it."""

QUESTION_CLASSES: Final = frozenset({"Elicit", "ElicitUrl", "Sample", "ListRoots", "NamespacedRequest"})

_FEATURES: Final = frozenset({"tool", "prompt", "resource"})
_CONTEXTS: Final = {"mcp_roundtrip.Context": False, "mcp_roundtrip.AsyncContext": True}


@dataclass(frozen=True, slots=True)
class ContextCall:
    """A call of a method of a context, or of a function that gets one.

    `is_async`: whether it has to be awaited; None if that is not known.
    """

    node: ast.Call
    method: str
    is_async: bool | None
    is_branch: bool = False

    @property
    def ends_round(self) -> bool:
        return self.method in ENDING or self.method == HELPER

    @property
    def shown(self) -> str:
        """The function as the author wrote it, such as ``ctx.elicit``."""
        return ast.unparse(self.node.func)

    @property
    def key(self) -> ast.expr | None:
        """The argument that is the key; None if there is none."""
        if self.method not in KEYED:
            return None
        by_name = [each.value for each in self.node.keywords if each.arg in ("key", "name")]
        return self.node.args[0] if self.node.args else next(iter(by_name), None)


@dataclass(frozen=True, slots=True)
class ContextFunction:
    """A function that runs again in every round.

    `names`: the variables that hold its contexts, each with whether that is an `AsyncContext`.
    `is_feature`: it is a tool, a prompt or a resource; otherwise another function calls it.
    """

    node: FunctionNode
    names: dict[str, bool]
    branches: frozenset[str]
    is_feature: bool
    calls: Sequence[ContextCall] = field(default=())


@dataclass(frozen=True)
class Module:
    """A source, and its functions with a context."""

    source: Source

    @cached_property
    def functions(self) -> list[ContextFunction]:
        found = []
        for node in ast.walk(self.source.tree):
            if isinstance(node, FunctionNode) and (names := self._contexts_of(node)):
                branches = _branches(node, names)
                names = names | dict.fromkeys(branches, True)
                is_feature = any(map(_is_feature_decorator, node.decorator_list))
                calls = list(self._calls(node, names, branches))
                found.append(ContextFunction(node, names, branches, is_feature, calls))
        return found

    def _contexts_of(self, function: FunctionNode) -> dict[str, bool]:
        """Return the contexts that a function receives, or takes from the function around it."""
        own = {
            each.arg: is_async
            for each in parameters(function)
            if (is_async := self.context_kind(each.annotation)) is not None
        }
        if own:
            return own
        used = {node.id for node in own_nodes(function) if isinstance(node, ast.Name)}
        for outer in self.source.ancestors(function):
            if isinstance(outer, FunctionNode) and not self._is_step_function(function, outer):
                shadowed = {each.arg for each in parameters(function)}
                names = {n: a for n, a in self._contexts_of(outer).items() if n in used - shadowed}
                if names:
                    return names
        return {}

    def _is_step_function(self, function: FunctionNode, outer: FunctionNode) -> bool:
        """Return whether an inner function is passed to another call, such as a step."""
        return any(
            isinstance(argument, ast.Name) and argument.id == function.name
            for node in ast.walk(outer)
            if isinstance(node, ast.Call)
            for argument in [*node.args, *(each.value for each in node.keywords)]
        )

    def context_kind(self, annotation: ast.expr | None) -> bool | None:
        """Return True for `AsyncContext`, False for `Context`, None for another annotation."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return None
        if annotation is None:
            return None
        name = self.source.dotted(annotation) or ""
        if name.startswith("."):  # a module of the package passes it on
            name = name.rpartition(".")[2]
        # docs' blocks and a type-checking import may leave out where the name comes from.
        return _CONTEXTS.get(name, _CONTEXTS.get(f"mcp_roundtrip.{name}"))

    def _calls(
        self, function: FunctionNode, names: dict[str, bool], branches: frozenset[str]
    ) -> Iterator[ContextCall]:
        for node in own_nodes(function):
            if isinstance(node, ast.Call):
                call = self.context_call(node, names, branches)
                if call is not None:
                    yield call

    def context_call(
        self, node: ast.Call, names: dict[str, bool], branches: frozenset[str] = frozenset()
    ) -> ContextCall | None:
        """Return what a call does with one of these contexts; None if it has nothing to do with them."""
        if isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            is_branch = _is_branch_call(receiver, names)
            if isinstance(receiver, ast.Name) and receiver.id in names:
                return ContextCall(node, node.func.attr, names[receiver.id], receiver.id in branches)
            if is_branch:
                return ContextCall(node, node.func.attr, is_async=True, is_branch=True)
        return self._helper_call(node, names)

    def _helper_call(self, node: ast.Call, names: dict[str, bool]) -> ContextCall | None:
        """Return the call of a function of the module that gets a context: it can ask."""
        arguments = [*node.args, *(each.value for each in node.keywords)]
        given = [each for each in arguments if _holds_context(each, names)]
        if not given:
            return None
        called = called_function(self.source, node)
        if called is None:
            return ContextCall(node, HELPER, is_async=None)
        if called.node is self.source.functions.get(called.node.name) and not self.can_end_round(
            called.node.name
        ):
            return None
        return ContextCall(node, HELPER, is_async=_has_to_be_awaited(called.node))

    def can_end_round(self, name: str) -> bool:
        """Return whether a function of the module makes a call of its context that can end the round."""
        pending, seen = [name], {name}
        while pending:
            ends_round, helpers = self._helpers_of(pending.pop())
            if ends_round:
                return True
            pending += helpers - seen
            seen |= helpers
        return False

    def _helpers_of(self, name: str) -> tuple[bool, frozenset[str]]:
        """Return whether a function can end the round by itself, and the helpers that can do it for it."""
        if name not in self._helpers:
            self._helpers[name] = self._find_helpers(name)
        return self._helpers[name]

    @cached_property
    def _helpers(self) -> dict[str, tuple[bool, frozenset[str]]]:
        return {}

    def _find_helpers(self, name: str) -> tuple[bool, frozenset[str]]:
        function = self.source.functions[name]
        names = self._contexts_of(function)
        helpers = set()
        for node in own_nodes(function):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr in ENDING:
                receiver = node.func.value
                if _holds_context(receiver, names):
                    return True, frozenset()
            arguments = [*node.args, *(each.value for each in node.keywords)]
            if any(_holds_context(each, names) for each in arguments):
                called = node.func.id if isinstance(node.func, ast.Name) else ""
                if called not in self.source.functions or called == name:
                    return True, frozenset()
                helpers.add(called)
        return False, frozenset(helpers)


def _has_to_be_awaited(function: FunctionNode) -> bool:
    is_generator = any(isinstance(each, ast.Yield) for each in own_nodes(function))
    return isinstance(function, ast.AsyncFunctionDef) and not is_generator


def _holds_context(node: ast.expr, names: dict[str, bool]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or _is_branch_call(node, names)


def _is_branch_call(node: ast.AST, names: dict[str, bool]) -> bool:
    """Return whether an expression is ``ctx.branch(…)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "branch"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in names
    )


def _branches(function: FunctionNode, names: dict[str, bool]) -> frozenset[str]:
    return frozenset(
        target.id
        for node in own_nodes(function)
        if isinstance(node, ast.Assign) and _is_branch_call(node.value, names)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_feature_decorator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in _FEATURES
