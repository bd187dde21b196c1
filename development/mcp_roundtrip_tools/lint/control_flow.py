"""Whether a call of the context can run after a line, by the structure of the statements.

One pass goes backwards through a block. After a helper runs what follows its calls in the module.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.name_resolution import called_function
from mcp_roundtrip_tools.lint.parsed_module import FunctionNode, Loop, Source

_CONDITIONS: Final = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.ExceptHandler, ast.match_case, ast.While, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)
"""What runs only sometimes, or later."""

Outcome = bool | None
"""Whether a call can run; None if the callers of the function decide."""


def runs_again(module: Module, function: ContextFunction, node: ast.AST) -> bool:
    """Return whether a call that can end the round can run after this expression or statement."""
    found = _runs_again_in(module.source, function, node)
    return _runs_again_in_callers(module, function) if found is None else found


def _runs_again_in_callers(module: Module, helper: ContextFunction) -> bool:
    pending = [helper]
    for helper in pending:  # it grows
        for function, node in module.calls():
            called = called_function(module.source, node)
            if called is None or called.node is not helper.node:
                continue
            found = _runs_again_in(module.source, function, node)
            if found:
                return True
            if found is None and function not in pending:
                pending.append(function)
    return False


def _runs_again_in(source: Source, function: ContextFunction, node: ast.AST) -> Outcome:
    """Return whether the function itself makes such a call; None if its callers decide."""
    ending = [call.node for call in function.calls if call.ends_round]
    at_end = False if function.is_feature else None
    return can_follow(source, function.node.body, ending, node, at_end=at_end)


def can_follow(
    source: Source,
    block: Sequence[ast.stmt],
    calls: Collection[ast.AST],
    node: ast.AST,
    *,
    at_end: Outcome = False,
    repeats: bool = True,
) -> Outcome:
    """Return whether a call can run after a node; at the end `at_end`. Without `repeats`, loops run once."""
    own = _statement(source, node)
    if any(_statement(source, call) is own and _end(call) > _end(node) for call in calls):
        return True
    found = _Pass({_statement(source, call) for call in calls}, at_end, repeats=repeats)
    found.enter(block, at_end)
    return found.after[own]


def is_conditional(source: Source, node: ast.AST, outer: ast.AST) -> bool:
    """Return whether something inside `outer` decides whether, or when, the node runs."""
    between = takewhile(lambda each: each is not outer, source.ancestors(node))
    return any(isinstance(each, _CONDITIONS) for each in between)


def certain_calls(source: Source, function: FunctionNode) -> Iterator[ast.Call]:
    """The calls that each call of the function makes: under no condition, and not behind a `return`."""
    for statement in function.body:
        nodes = [*ast.walk(statement)]
        calls = (each for each in nodes if isinstance(each, ast.Call))
        yield from (each for each in calls if not is_conditional(source, each, function))
        if any(isinstance(each, ast.Return) for each in nodes):
            return


def _statement(source: Source, node: ast.AST) -> ast.AST:
    return next(each for each in [node, *source.ancestors(node)] if isinstance(each, ast.stmt))


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


class _Pass:
    """A pass: `after` has what can run after each statement's own expressions, `calls` those that call."""

    def __init__(self, calls: Collection[ast.AST], at_end: Outcome, *, repeats: bool) -> None:
        self.after: dict[ast.AST, Outcome] = {}
        self._calls = calls
        self._at_return = at_end
        self._repeats = repeats
        self._at_break: Outcome = None
        self._at_continue: Outcome = None

    def enter(self, block: Iterable[ast.stmt], after: Outcome) -> Outcome:
        """Return what can run from the start of a block, after which something can run."""
        for statement in reversed([*block]):
            self.after[statement] = self._enter(statement, after)
            after = True if statement in self._calls else self.after[statement]
        return after

    def _enter(self, statement: ast.stmt, after: Outcome) -> Outcome:
        """Return what can run after the statement's own expressions, such as the test of an `if`."""
        match statement:
            case ast.Return():
                return self._at_return
            case ast.Raise():
                return False
            case ast.Break():
                return self._at_break
            case ast.Continue():
                return self._at_continue
            case ast.If(body=body, orelse=orelse):
                return _either(self.enter(body, after), self.enter(orelse, after))
            case ast.With(body=body) | ast.AsyncWith(body=body):
                return self.enter(body, after)
            case ast.Match(cases=cases):
                return _either(after, *(self.enter(case.body, after) for case in cases))
            case ast.Try() | ast.TryStar():
                final = self.enter(statement.finalbody, after)
                handlers = [(self.enter(each.body, final), each) for each in statement.handlers]
                caught = _either(*(found for found, each in handlers if not _catches_refusal(each)))
                found = self.enter(statement.body, self.enter(statement.orelse, final))
                for each in ast.walk(ast.Module(statement.body, [])):
                    if each in self.after:
                        self.after[each] = _either(self.after[each], caught)
                return _either(found, caught)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._enter_loop(statement, after)
        return after

    def _enter_loop(self, loop: Loop, after: Outcome) -> Outcome:
        around = self._at_break, self._at_continue
        at_end = found = self.enter(loop.orelse, after)
        has_test = isinstance(loop, ast.While) and loop in self._calls
        for _ in range(2 if self._repeats else 1):
            next_turn = True if has_test and self._repeats else found
            self._at_break, self._at_continue = after, next_turn
            found = _either(at_end, self.enter(loop.body, next_turn))
        self._at_break, self._at_continue = around
        return found


def _catches_refusal(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches only what questions raise."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(
        each and ast.unparse(each).endswith(("ElicitationDeclined", "ElicitationCancelled")) for each in kinds
    )


def _either(*outcomes: Outcome) -> Outcome:
    if True in outcomes:
        return True
    return None if None in outcomes else False
