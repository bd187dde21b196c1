"""What is wrong with calls of an `AsyncContext` that were used, or left behind, without `await`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.engine.context_call import ContextCall, Origin
from mcp_roundtrip.engine.outcome import Done, Failed
from mcp_roundtrip.errors import (
    ElicitationCancelled,
    ElicitationDeclined,
    NotAwaited,
    StepFailed,
    StepInterrupted,
    ToolError,
)

if TYPE_CHECKING:
    from asyncio import Task

    from mcp_roundtrip.engine.run import Run

_USES: Final = {
    "__bool__": "was tested for truth",
    "__str__": "was made text",
    "__format__": "was made text",
    "__bytes__": "was made bytes",
    "__len__": "was asked for its length",
    "__contains__": "was searched",
    "__call__": "was called",
    "__enter__": "was entered with `with`",
    "__aenter__": "was entered with `async with`",
    "__reduce_ex__": "was copied",
    **dict.fromkeys(["__iter__", "__aiter__", "__reversed__"], "was iterated over"),
    **dict.fromkeys(["__getitem__", "__setitem__", "__delitem__"], "was indexed"),
    **dict.fromkeys(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"], "was compared"),
}

_REFUSALS: Final = (ElicitationDeclined, ElicitationCancelled, StepFailed, StepInterrupted)
"""ToolErrors that come from a call of the context: it is they that kept the code from its later lines."""


def described(origin: Origin) -> str:
    """The call's kind and key, its method, and where it was made."""
    kind, method, _, _, code, *_ = origin
    place = f"{code.co_filename}:{_line(origin)}"
    if not kind:
        return f"ctx.{method.__name__} ({place})"
    return f"{kind} {' and '.join(map(repr, _keys(origin)))} (ctx.{method.__name__}, {place})"


def _keys(origin: Origin) -> list[str]:
    _, method, (context, *given), named, *_ = origin
    if method.__name__ == "ask":
        keys = [getattr(question, "key", question) for question in given]
    else:
        keys = [
            named["key"] if "key" in named else given[0] if given else "roots"
        ]  # list_roots has a default
    return [f"{context._prefix}{key}" for key in keys]


def _line(origin: Origin) -> int:
    *_, code, offset, _ = origin
    lines = (line for start, end, line in code.co_lines() if start <= offset < end and line is not None)
    return next(lines, code.co_firstlineno)


def _remedy(origin: Origin) -> str:
    return f"write `await ctx.{origin[1].__name__}(...)`"


def misused(origin: Origin, name: str) -> NotAwaited:
    """For an operation, or an attribute, of this name."""
    use = _USES.get(name, "was calculated with" if name.startswith("__") else f"was asked for `.{name}`")
    return NotAwaited(f"{described(origin)} {use} before it was awaited: {_remedy(origin)}")


def twice(origin: Origin) -> NotAwaited:
    """For a call that is awaited again."""
    text = "is awaited a second time: keep what the first `await` returns in a variable"
    return NotAwaited(f"{described(origin)} {text}")


def discarded(run: Run, origin: Origin) -> None:
    """Fail a run because a call is gone before anything awaited it."""
    left = [other for other in run.unawaited if other is not origin]
    if len(left) < len(run.unawaited) and not _is_given_up(origin):
        run.fail(_never_awaited([origin]))
    run.unawaited = left


def refuse_to_act(run: Run, task: Task[Any] | None, step: str, given: Sequence[object]) -> None:
    """Raise NotAwaited if `step` would run without an answer, or a value, that the code before it asks for.

    That is a question that the same task made, or any call among the step's arguments.
    """
    arguments = [value._origin for value in given if isinstance(value, ContextCall)]
    for origin in run.unawaited:
        is_question_of_task = origin[0] == "question" and origin[-1] is task
        if is_question_of_task or any(argument is origin for argument in arguments):
            text = f"is not awaited where step {step!r} would run: await it before the step"
            raise run.fail(NotAwaited(f"{described(origin)} {text}"))


def conclude(
    run: Run, outcome: Done | Failed, in_tasks: Sequence[Origin] = (), asked: Sequence[str] = ()
) -> Done | Failed:
    """The outcome of a body that ended: a failure if it left calls behind that were never awaited.

    `in_tasks` are calls of tasks that still run, `asked` the keys of questions that other tasks ask. They
    fail a body that returned; one that raised could not await its tasks. An unexpected exception stays the
    outcome, and so does one that a call of the context raised: they are why the code did not get to its
    later lines.
    """
    left = [origin for origin in run.unawaited if not _is_given_up(origin, is_over=True)]
    run.unawaited = []
    if run.fault is None and left:
        run.fail(_never_awaited(left))
    if run.fault is None and isinstance(outcome, Done) and (in_tasks or asked):
        run.fail(_left_in_tasks([*map(described, in_tasks), *(f"question {key!r}" for key in asked)]))
    fault = run.fault
    if not isinstance(fault, NotAwaited) or not isinstance(outcome, Failed):
        return outcome
    error = outcome.error
    if fault.__traceback__ is not None:  # it was raised, and what came of that is its consequence
        return outcome
    if isinstance(error, ToolError) and not isinstance(error, _REFUSALS):
        fault.__context__ = error
    else:
        error.add_note(str(fault))
        run.fault = None
    return outcome


def _never_awaited(origins: Sequence[Origin]) -> NotAwaited:
    texts = (f"{described(origin)} was never awaited: {_remedy(origin)}" for origin in origins)
    return NotAwaited("\n".join(texts))


def _left_in_tasks(calls: Sequence[str]) -> NotAwaited:
    text = "is left in a task that was never awaited: await the task, or what asyncio.gather returns for it"
    return NotAwaited("\n".join(f"{call} {text}" for call in calls))


def _is_given_up(origin: Origin, *, is_over: bool = False) -> bool:
    """Whether the task that made a call was cancelled or failed, so that it could not await the call.

    At the end of the pass, `is_over`, that is so of every task that still runs.
    """
    task = origin[-1]
    if task is None:
        return False
    if not task.done():
        return is_over or task.cancelling() > 0
    return task.cancelled() or task.exception() is not None
