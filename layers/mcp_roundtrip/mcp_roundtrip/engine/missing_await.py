"""Detects a missing `await`: the calls of an `AsyncContext` refuse to be used as values.

A plain coroutine is truthy, so `if ctx.elicit("sure", ...)` without `await` would treat a question that was
never asked as a yes. A `ContextCall` raises NotAwaited instead, and so does a pass that leaves one behind.
"""

from __future__ import annotations

import inspect
from asyncio import Task
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from mcp_roundtrip.engine.replay import Done, Failed
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import (
    ElicitationCancelled,
    ElicitationDeclined,
    NotAwaited,
    StepFailed,
    StepInterrupted,
    ToolError,
)

T = TypeVar("T")
AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Coroutine[Any, Any, Any]])


class MethodCall(Struct, eq=False):
    """One call of a context's method, as an error message names it.

    `kind` is the word for what the key names, such as "question", or "" if the call has no key. `task` is the
    calling task, None in a thread.
    """

    kind: str
    method: Callable[..., Any]
    context: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    task: Task[Any] | None

    def __str__(self) -> str:
        if not self.kind:
            return f"ctx.{self.method.__name__}"
        return f"{self.kind} {' and '.join(map(repr, self._keys()))}"

    def _keys(self) -> list[str]:
        if self.method.__name__ == "ask":
            keys = [getattr(question, "key", question) for question in self.args]
        else:
            keys = [
                self.kwargs.get("key", self.args[0] if self.args else "roots")
            ]  # list_roots has a default
        return [f"{self.context._prefix}{key}" for key in keys]

    def missing_await(self, problem: str) -> NotAwaited:
        """Return the error about this call, with the code to write instead."""
        return NotAwaited(f"{self} {problem}: write `await ctx.{self.method.__name__}(...)`")

    def is_abandoned(self) -> bool:
        """Return whether the calling task was cancelled or failed, so that it could not await the call."""
        if self.task is None:
            return False
        if not self.task.done():
            return self.task.cancelling() > 0
        return self.task.cancelled() or self.task.exception() is not None


class UnawaitedCalls:
    """The calls of a pass that nothing has awaited yet."""

    __slots__ = ("_calls", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self._calls: list[MethodCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: MethodCall) -> None:
        self._calls.append(call)

    def remove(self, call: MethodCall) -> bool:
        """Remove a call that is awaited or garbage collected; return False if it is not in the list."""
        calls = self._calls
        if calls and calls[-1] is call:  # nearly always: a call is awaited where it is made
            calls.pop()
            return True
        self._calls = [other for other in calls if other is not call]
        return len(self._calls) < len(calls)

    def take(self) -> list[MethodCall]:
        calls, self._calls = self._calls, []
        return calls

    def discard(self, call: MethodCall) -> None:
        """Fail the run because a call was garbage collected before anything awaited it."""
        if self.remove(call) and not call.is_abandoned():
            self.run.fail(call.missing_await("was never awaited"))

    def refuse_step(self, step: str, task: Task[Any] | None, arguments: Sequence[object]) -> None:
        """Raise NotAwaited if `step` depends on a call that nothing has awaited.

        It depends on the questions that the same task asked, and on the calls among its arguments.
        """
        passed = [value._call for value in arguments if isinstance(value, ContextCall)]
        for call in self._calls:
            is_question_of_task = call.kind == "question" and call.task is task
            if is_question_of_task or any(each is call for each in passed):
                raise self.run.fail(call.missing_await(f"is not awaited before step {step!r}"))


class ContextCall(Coroutine[Any, Any, T]):
    """A call of an `AsyncContext`, to be awaited once or to be handed to asyncio.

    Its use as a value raises NotAwaited, which also decides the outcome of the run. The method's coroutine is
    created when the call is awaited, because Python warns about a coroutine that never runs.
    """

    __slots__ = ("_call", "_coroutine", "_unawaited")

    def __init__(self, unawaited: UnawaitedCalls, call: MethodCall) -> None:
        self._unawaited = unawaited
        self._call = call
        self._coroutine: Coroutine[Any, Any, T] | None = None
        unawaited.add(call)

    def __await__(self) -> Any:
        return self.start().__await__()

    def start(self) -> Coroutine[Any, Any, T]:
        """Return the method's coroutine, for the code or the task that awaits the call."""
        call = self._call
        if self._coroutine is not None:
            text = "is awaited a second time: keep what the first `await` returns in a variable"
            raise self._unawaited.run.fail(NotAwaited(f"{call} {text}"))
        self._unawaited.remove(call)
        coroutine: Coroutine[Any, Any, T] = call.method(call.context, *call.args, **call.kwargs)
        self._coroutine = coroutine
        return coroutine

    def send(self, value: Any) -> Any:
        return (self._coroutine or self.start()).send(value)

    def throw(self, *error: Any) -> Any:
        return (self._coroutine or self.start()).throw(*error)

    def close(self) -> None:
        """End the call. A closed call need not be awaited."""
        (self._coroutine or self.start()).close()

    def __del__(self) -> None:
        if self._coroutine is None and self._unawaited:
            self._unawaited.discard(self._call)

    def __repr__(self) -> str:
        return f"<{self._call}>"


_USES: Final = ("bool", "iter", "str", "format", "eq", "ne", "lt", "le", "gt", "ge")
"""The special methods with which a coroutine can be used as a value. Python refuses the others, and the
error has a note about the call that was never awaited."""


def _refuse(self: ContextCall[Any], *_: object) -> Any:
    raise self._unawaited.run.fail(self._call.missing_await("is used before it is awaited"))


for _name in _USES:
    setattr(ContextCall, f"__{_name}__", _refuse)  # the hash stays, which asyncio needs


# Mocks of a context need it: `inspect.iscoroutinefunction` returns True then. New in Python 3.12.
_mark_coroutine_function: Callable[[Any], Any] = getattr(
    inspect, "markcoroutinefunction", lambda function: function
)


def returns_context_call(kind: str = "") -> Callable[[AnyMethod], AnyMethod]:
    """Make a coroutine method of `AsyncContext` return ContextCalls.

    `kind` is the word for what the key names in error messages. Type checkers see the method unchanged.
    """

    def decorate(method: AnyMethod) -> AnyMethod:
        @wraps(method)
        def call(context: Any, *args: Any, **kwargs: Any) -> ContextCall[Any]:
            branches = context._branches
            made = MethodCall(kind, method, context, args, kwargs, branches.current_task())
            return ContextCall(branches.unawaited, made)

        return cast("AnyMethod", _mark_coroutine_function(call))

    return decorate


_CONTEXT_ERRORS: Final = (ElicitationDeclined, ElicitationCancelled, StepFailed, StepInterrupted)
"""ToolErrors that a call of the context raises: they are why the code did not reach its later lines."""


def outcome_with_unawaited(
    run: Run, outcome: Done | Failed, unawaited: Sequence[MethodCall], in_tasks: Sequence[str]
) -> Done | Failed:
    """Return the outcome of a function that ended while calls were not awaited.

    `in_tasks` names the calls of tasks that still run. They fail a function that returned; one that raised
    could not await its tasks. An unexpected exception stays the outcome, and so does one that a call of the
    context raised: it explains why the code did not reach its later lines.
    """
    problems = [
        str(call.missing_await("was never awaited"))
        for call in unawaited
        if not call.is_abandoned() and (call.task is None or call.task.done())
    ]
    if not problems and isinstance(outcome, Done):
        text = (
            "is left in a task that was never awaited: await the task, or what asyncio.gather returns for it"
        )
        problems = [f"{call} {text}" for call in in_tasks]
    if problems:
        run.fail(NotAwaited("\n".join(problems)))
    fault = run.fault
    if not isinstance(fault, NotAwaited) or not isinstance(outcome, Failed):
        return outcome
    if fault.__traceback__ is not None:  # it was raised, and the outcome is its consequence
        return outcome
    error = outcome.error
    if isinstance(error, ToolError) and not isinstance(error, _CONTEXT_ERRORS):
        fault.__context__ = error
    else:
        error.add_note(str(fault))
        run.fault = None
    return outcome
