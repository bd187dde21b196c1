"""The functions of a module that have a context, and what they call on it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
"""Stands for the method in the call of a function that gets the context."""

QUESTION_CLASSES: Final = frozenset({"Elicit", "ElicitUrl", "Sample", "ListRoots", "NamespacedRequest"})

_FEATURES: Final = frozenset({"tool", "prompt", "resource"})
_CONTEXTS: Final = {"Context": False, "AsyncContext": True}


@dataclass(frozen=True, slots=True)
class ContextCall:
    """A call of a method of a context, or of a function that gets one.

    `is_async`: whether it has to be awaited; None if that is not known. `helper` is the function that is
    called, if it is of this module.
    """

    node: ast.Call
    method: str
    is_async: bool | None
    helper: FunctionNode | None = None

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
        return next(iter([*self.node.args, *by_name]), None)


@dataclass(slots=True)
class ContextFunction:
    """A function that runs again in every round.

    `names`: the variables that hold its contexts, each with whether that is an `AsyncContext`. `given` are
    those that it receives; the others are branches.
    `is_feature`: it is a tool, a prompt or a resource; otherwise another function calls it.
    """

    node: FunctionNode
    names: Mapping[str, bool]
    given: Collection[str]
    is_feature: bool
    calls: Sequence[ContextCall] = field(default=())


class Module:
    """A source, and its functions with a context."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: list[ContextFunction] = []
        for node in ast.walk(source.tree):
            if isinstance(node, FunctionNode) and (given := self._contexts_of(node)):
                names = given | dict.fromkeys(_branches(node, given), True)
                is_feature = any(map(_is_feature_decorator, node.decorator_list))
                self.functions.append(ContextFunction(node, names, given, is_feature))
        for function in self.functions:
            function.calls = list(self._calls(function))
        self._leave_out_harmless_helpers()

    def _leave_out_harmless_helpers(self) -> None:
        """Remove the calls of helpers of this module that can never end a round."""
        harmless = {each.node for each in self.functions}
        before = None
        while before != (before := len(harmless)):
            for function in self.functions:
                if any(each.ends_round and each.helper not in harmless for each in function.calls):
                    harmless.discard(function.node)
        for function in self.functions:
            function.calls = [each for each in function.calls if each.helper not in harmless]

    def _contexts_of(self, function: FunctionNode) -> dict[str, bool]:
        """Return the contexts that a function receives, or takes from the function around it."""
        given = parameters(function)
        own = {each.arg: kind for each in given if (kind := context_kind(self.source, each)) is not None}
        if own:
            return own
        used = {node.id for node in own_nodes(function) if isinstance(node, ast.Name)}
        used -= {each.arg for each in given}
        for outer in self.source.ancestors(function):
            if isinstance(outer, FunctionNode) and not _is_passed(function, outer):
                names = {n: kind for n, kind in self._contexts_of(outer).items() if n in used}
                if names:
                    return names
        return {}

    def _calls(self, function: ContextFunction) -> Iterator[ContextCall]:
        for node in own_nodes(function.node):
            if isinstance(node, ast.Call):
                call = self.context_call(node, function.names)
                if call is not None:
                    yield call

    def context_call(self, node: ast.Call, names: Mapping[str, bool]) -> ContextCall | None:
        """Return what a call does with one of these contexts; None if it has nothing to do with them."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name in names:
                return ContextCall(node, method, names[name])
            case ast.Attribute(value=receiver, attr=method) if _is_branch_call(receiver, names):
                return ContextCall(node, method, is_async=True)
        arguments = [*node.args, *(each.value for each in node.keywords)]
        if not any(_holds_context(each, names) for each in arguments):
            return None
        called = called_function(self.source, node)
        if called is None:
            return ContextCall(node, HELPER, is_async=None)
        own = called.node if called.source is self.source else None
        return ContextCall(node, HELPER, is_async=_has_to_be_awaited(called.node), helper=own)

    def can_end_round(self, helper: ast.AST | None) -> bool:
        """Return whether a function of the module makes a call of its context that can end the round."""
        calls = (call for each in self.functions if each.node is helper for call in each.calls)
        return any(call.ends_round for call in calls)


def context_kind(source: Source, parameter: ast.arg) -> bool | None:
    """Return True for an `AsyncContext`, False for a `Context`, None for another parameter."""
    annotation = parameter.annotation
    if isinstance(annotation, ast.Constant):
        name = str(annotation.value)
    else:
        name = "" if annotation is None else source.dotted(annotation) or ""
    # A module of the package may pass the class on.
    is_ours = name.startswith((".", "mcp_roundtrip.")) or "." not in name
    return _CONTEXTS.get(name.rpartition(".")[2]) if is_ours else None


def _is_passed(function: FunctionNode, outer: FunctionNode) -> bool:
    """Return whether an inner function is passed to another call, such as a step."""
    return any(
        isinstance(argument, ast.Name) and argument.id == function.name
        for node in ast.walk(outer)
        if isinstance(node, ast.Call)
        for argument in [*node.args, *(each.value for each in node.keywords)]
    )


def _has_to_be_awaited(function: FunctionNode) -> bool:
    is_generator = any(isinstance(each, ast.Yield) for each in own_nodes(function))
    return isinstance(function, ast.AsyncFunctionDef) and not is_generator


def _holds_context(node: ast.expr, names: Mapping[str, bool]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or _is_branch_call(node, names)


def _is_branch_call(node: ast.AST, names: Mapping[str, bool]) -> bool:
    """Return whether an expression is ``ctx.branch(…)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="branch")):
            return name in names
    return False


def _branches(function: FunctionNode, names: Mapping[str, bool]) -> Iterator[str]:
    return (
        target.id
        for node in own_nodes(function)
        if isinstance(node, ast.Assign) and _is_branch_call(node.value, names)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_feature_decorator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in _FEATURES
