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
from weakref import ReferenceType, ref

from mcp_roundtrip.engine.outcomes import Done, Failed
from mcp_roundtrip.engine.pass_state import Run
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


class ContextCall(Coroutine[Any, Any, T]):
    """A call of an `AsyncContext`, to be awaited once or to be handed to asyncio.

    The method's coroutine is created when the call is awaited, because Python warns about a coroutine that
    never runs.

    `kind` is the word for what the key names, such as "question", or "" if the call has no key. No member has
    the name of an author's field, such as `name`: without `await`, reading that has to fail.
    """

    def __init__(
        self,
        kind: str,
        method: Callable[..., Coroutine[Any, Any, T]],
        context: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._kind = kind
        self._task: Task[Any] | None = context._branches.current_task()  # None in a thread
        self._method = method
        self._context = context
        self._args = args
        self._kwargs = kwargs
        self._coroutine: Coroutine[Any, Any, T] | None = None
        self._run: Run = context._run
        self._unawaited: UnawaitedCalls = context._branches.unawaited
        self._unawaited[id(self)] = ref(self)

    def __await__(self) -> Any:
        return self.start().__await__()

    def start(self) -> Coroutine[Any, Any, T]:
        """Return the method's coroutine, for the code or the task that awaits the call."""
        if self._coroutine is not None:
            text = "is awaited a second time: keep what the first `await` returns in a variable"
            raise self._run.fail(NotAwaited(f"{self.describe()} {text}"))
        self._unawaited.pop(id(self), None)
        self._coroutine = self._method(self._context, *self._args, **self._kwargs)
        return self._coroutine

    def send(self, value: Any) -> Any:
        return (self._coroutine or self.start()).send(value)

    def throw(self, *error: Any) -> Any:
        return (self._coroutine or self.start()).throw(*error)

    def close(self) -> None:
        (self._coroutine or self.start()).close()

    def __del__(self) -> None:
        """Fail the run if the call is garbage collected before anything awaited it."""
        if self._unawaited.pop(id(self), None) is not None and not self.is_abandoned():
            self.fail_run("was never awaited")

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def describe(self) -> str:
        """Return the kind and the key of the call, for error messages."""
        method = self._method.__name__
        if not self._kind:
            return f"ctx.{method}"
        if method == "ask":
            keys = [getattr(question, "key", question) for question in self._args]
        else:
            # list_roots has a default
            keys = [self._kwargs.get("key", self._args[0] if self._args else "roots")]
        return f"{self._kind} {' and '.join(repr(f'{self._context._prefix}{key}') for key in keys)}"

    def missing_await(self, problem: str) -> str:
        """Return the error message about this call, with the code to write instead."""
        return f"{self.describe()} {problem}: write `await ctx.{self._method.__name__}(...)`"

    def fail_run(self, problem: str) -> NotAwaited:
        """Make the missing `await` the outcome of the run, and return the error."""
        return self._run.fail(NotAwaited(self.missing_await(problem)))

    def is_question_of(self, task: Task[Any] | None) -> bool:
        return self._kind == "question" and self._task is task

    def is_abandoned(self) -> bool:
        """Return whether the calling task was cancelled or failed, so that it could not await the call."""
        if self._task is None:
            return False
        if not self._task.done():
            return self._task.cancelling() > 0
        return self._task.cancelled() or self._task.exception() is not None


UnawaitedCalls = dict[int, ReferenceType[ContextCall[Any]]]
"""The calls of a pass that nothing has awaited yet, by their `id`."""


def alive(unawaited: UnawaitedCalls) -> list[ContextCall[Any]]:
    """Return the calls that nothing has awaited, and that the code can still await."""
    # Of a copy: garbage collection and other threads may change the calls meanwhile.
    calls = [reference() for reference in [*unawaited.values()]]
    return [call for call in calls if call is not None]


_USES: Final = ("bool", "iter", "str", "format", "eq", "ne", "lt", "le", "gt", "ge")
"""The special methods with which a coroutine can be used as a value. Python refuses the others, and the
error has a note about the call that was never awaited."""


def _refuse(self: ContextCall[Any], *_: object) -> Any:
    raise self.fail_run("is used before it is awaited")


for _name in _USES:
    setattr(ContextCall, f"__{_name}__", _refuse)  # the hash stays, which asyncio needs


# Mocks of a context need it: `inspect.iscoroutinefunction` returns True then. New in Python 3.12.
_mark_coroutine_function: Callable[[Any], Any] = getattr(
    inspect, "markcoroutinefunction", lambda function: function
)


def returns_context_call(kind: str = "") -> Callable[[AnyMethod], AnyMethod]:
    """Make a method of `AsyncContext` return ContextCalls. Type checkers see the method unchanged."""

    def decorate(method: AnyMethod) -> AnyMethod:
        @wraps(method)
        def call(context: Any, *args: Any, **kwargs: Any) -> ContextCall[Any]:
            return ContextCall(kind, method, context, args, kwargs)

        return cast("AnyMethod", _mark_coroutine_function(call))

    return decorate


_CONTEXT_ERRORS: Final = (ElicitationDeclined, ElicitationCancelled, StepFailed, StepInterrupted)
"""ToolErrors that a call of the context raises: they are why the code did not reach its later lines."""


def outcome_with_unawaited(
    run: Run, outcome: Done | Failed, unawaited: Sequence[ContextCall[Any]], in_tasks: Sequence[str]
) -> Done | Failed:
    """Return the outcome of a function that ended while calls were not awaited.

    `in_tasks` names the calls of tasks that still run. They fail a function that returned; one that raised
    could not await its tasks. An unexpected exception stays the outcome, and so does one of a context call.
    """
    problems = [
        call.missing_await("was never awaited")
        for call in unawaited
        if not call.is_abandoned() and (call._task is None or call._task.done())
    ]
    if not problems and isinstance(outcome, Done):
        text = (
            "is left in a task that has not ended: await the task, or what asyncio.gather returns for it; "
            "after an exception, only ctx.gather and a TaskGroup end the other tasks"
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
