"""The functions of a module that have a context, and what they call on it."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcp_roundtrip_tools.lint.name_resolution import called_function, definition_of, unwrapped
from mcp_roundtrip_tools.lint.parsed_module import (
    FunctionNode,
    Source,
    argument,
    arguments,
    own_nodes,
    parameters,
)

QUESTIONS: Final = frozenset({"elicit", "confirm", "elicit_url", "sample", "list_roots", "request", "ask"})
VALUES: Final = frozenset({"now", "uuid", "random", "signed_link"})
"""Calls that are recorded, and never end a round."""

ENDING: Final = QUESTIONS | {"step", "run_as_task", "sleep", "checkpoint", "gather"}
"""Calls that can end a round: what stands before them runs again."""

NOTIFICATIONS: Final = frozenset({"progress", "log"})
RECORDED: Final = ENDING | VALUES
AWAITABLE: Final = RECORDED | NOTIFICATIONS
KEYED: Final = (QUESTIONS - {"ask"}) | VALUES | {"step", "sleep", "branch"}
"""Calls whose first argument is a key."""

HELPER: Final = "(helper)"
"""Stands for the method in the call of a function that gets the context."""

QUESTION_CLASSES: Final = frozenset({"Elicit", "ElicitUrl", "Sample", "NamespacedRequest"})

_FEATURES: Final = frozenset({"tool", "prompt", "resource"})
_CONTEXTS: Final = {"Context": False, "AsyncContext": True}


@dataclass(frozen=True, slots=True)
class ContextCall:
    """A call of a context's method, or of a `helper` that gets it. `is_async` is None if it is not known."""

    node: ast.Call
    method: str
    is_async: bool | None
    helper: FunctionNode | None = None

    @property
    def ends_round(self) -> bool:
        return self.method in ENDING or self.method == HELPER

    @property
    def key(self) -> ast.expr | None:
        """The argument that is the key; None if there is none."""
        return argument(self.node, 0, "key", "name") if self.method in KEYED else None


@dataclass(slots=True)
class ContextFunction:
    """A function that each round runs, with its contexts. `is_feature`: it is a tool, prompt or resource."""

    node: FunctionNode
    given: Sequence[str]
    is_feature: bool
    calls: Sequence[ContextCall] = field(default=())


class Module:
    """A source, and its functions with a context."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: list[ContextFunction] = []
        nodes = [each for each in ast.walk(source.tree) if isinstance(each, FunctionNode)]
        received = {
            node: [each.arg for each in parameters(node) if context_kind(source, each) is not None]
            for node in nodes
        }
        for node in nodes if any(received.values()) else ():
            if given := received[node] or self._taken_contexts(node):
                is_feature = any(map(_is_feature_decorator, node.decorator_list))
                self.functions.append(ContextFunction(node, given, is_feature))
        self.by_node: Mapping[ast.AST | None, ContextFunction] = {each.node: each for each in self.functions}
        for function in self.functions:
            calls = map(self.context_call, own_nodes(function.node))
            function.calls = [each for each in calls if each is not None]
        self._leave_out_harmless_helpers()

    def _leave_out_harmless_helpers(self) -> None:
        """Remove the calls of helpers of this module that can never end a round."""
        harmless = {each.node for each in self.functions}
        while ending := [each for each in self.functions if each.node in harmless and _ends(each, harmless)]:
            harmless -= {each.node for each in ending}
        for function in self.functions:
            function.calls = [each for each in function.calls if each.helper not in harmless]

    def _taken_contexts(self, function: FunctionNode) -> list[str]:
        """Return the contexts that a function takes from the function around it, or from `self`."""
        around = (each for each in self.source.ancestors(function) if isinstance(each, FunctionNode))
        if any(_is_passed(function, outer) for outer in around):
            return []
        names = (each for each in own_nodes(function) if isinstance(each, ast.Name | ast.Attribute))
        return [ast.unparse(each) for each in names if kind_of(self.source, each) is not None]

    def context_call(self, node: ast.AST) -> ContextCall | None:
        """Return what a call does with a context; None if it has nothing to do with one."""
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Attribute):
            kind = kind_of(self.source, node.func.value)
            if kind is not None:
                return ContextCall(node, node.func.attr, kind)
        if all(kind_of(self.source, each) is None for each in arguments(node)):
            return None
        called = called_function(self.source, node)
        if called is None:
            return ContextCall(node, HELPER, is_async=None)
        own = called.node if called.source is self.source else None
        return ContextCall(node, HELPER, is_async=_has_to_be_awaited(called.node), helper=own)

    def calls(self) -> Iterator[tuple[ContextFunction, ast.Call]]:
        """Yield all calls of the functions with a context."""
        for function in self.functions:
            yield from ((function, each) for each in own_nodes(function.node) if isinstance(each, ast.Call))

    def can_end_round(self, helper: ast.AST | None) -> bool:
        """Return whether a function of the module makes a call of its context that can end the round."""
        function = self.by_node.get(helper)
        return function is not None and any(call.ends_round for call in function.calls)


def _ends(function: ContextFunction, harmless: Collection[FunctionNode]) -> bool:
    """Return whether a function makes a call that can end a round, if these helpers cannot."""
    return any(each.ends_round and each.helper not in harmless for each in function.calls)


def kind_of(source: Source, node: ast.AST) -> bool | None:
    """Return True for an `AsyncContext` or its branch, False for a `Context`, None for another value."""
    source, made = definition_of(source, node)
    match made:
        case ast.Call(func=ast.Attribute(value=receiver, attr="branch")):
            return None if kind_of(source, receiver) is None else True
        case ast.arg():
            return context_kind(source, made)
    return None


def has_context(source: Source, function: FunctionNode) -> bool:
    """Return whether a function receives a context, or uses that of an object or of a function around it."""
    return any(kind_of(source, each) is not None for each in [*parameters(function), *own_nodes(function)])


def context_kind(source: Source, parameter: ast.arg) -> bool | None:
    """Return True for an `AsyncContext`, False for a `Context`, None for another parameter."""
    if parameter.annotation is None:
        function = source.parents[source.parents[parameter]]
        is_named = parameter.arg == "ctx" and isinstance(function, FunctionNode)
        return isinstance(function, ast.AsyncFunctionDef) if is_named else None
    source, made = definition_of(source, unwrapped(source, parameter.annotation))
    return _CONTEXTS.get((source.dotted(made) or "").removeprefix("mcp_roundtrip."))


def _is_passed(function: FunctionNode, outer: FunctionNode) -> bool:
    """Return whether an inner function is passed to another call, such as a step."""
    calls = (each for each in ast.walk(outer) if isinstance(each, ast.Call))
    given = (each for call in calls for each in arguments(call))
    return any(isinstance(each, ast.Name) and each.id == function.name for each in given)


def _has_to_be_awaited(function: FunctionNode) -> bool:
    is_generator = any(isinstance(each, ast.Yield) for each in own_nodes(function))
    return isinstance(function, ast.AsyncFunctionDef) and not is_generator


def _is_feature_decorator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in _FEATURES
