"""The errors about calls of an `AsyncContext` that were used, or left behind, without `await`.

Imported where one is raised, so that correct code does not load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp_roundtrip.engine.call_site import CallSite
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

_USES: Final = {
    "__bool__": "was tested for truth",
    "__str__": "was converted to text",
    "__format__": "was converted to text",
    "__bytes__": "was converted to bytes",
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

_CONTEXT_ERRORS: Final = (ElicitationDeclined, ElicitationCancelled, StepFailed, StepInterrupted)
"""ToolErrors that a call of the context raises: they are why the code did not reach its later lines."""


def used_before_await(site: CallSite, name: str) -> NotAwaited:
    """Return the error for the use of a special method, or of an attribute, of this name."""
    use = _USES.get(name, "was used as a number" if name.startswith("__") else f"was asked for `.{name}`")
    return NotAwaited(f"{site} {use} before it was awaited: {site.remedy}")


def awaited_twice(site: CallSite) -> NotAwaited:
    """Return the error for a second `await`."""
    text = "is awaited a second time: keep what the first `await` returns in a variable"
    return NotAwaited(f"{site} {text}")


def unawaited_before_step(site: CallSite, step: str) -> NotAwaited:
    """Return the error for a step that would run before a call that its code depends on."""
    return NotAwaited(f"{site} is not awaited where step {step!r} would run: await it before the step")


def never_awaited(sites: Sequence[CallSite]) -> NotAwaited:
    """Return the error for calls that nothing awaited."""
    return NotAwaited("\n".join(f"{site} was never awaited: {site.remedy}" for site in sites))


def _left_in_tasks(calls: Sequence[str]) -> NotAwaited:
    text = "is left in a task that was never awaited: await the task, or what asyncio.gather returns for it"
    return NotAwaited("\n".join(f"{call} {text}" for call in calls))


def outcome_with_unawaited(
    run: Run,
    outcome: Done | Failed,
    unawaited: Sequence[CallSite],
    in_tasks: Sequence[CallSite],
    asked: Sequence[str],
) -> Done | Failed:
    """Return the outcome of a function that ended while calls were not awaited.

    `in_tasks` are the calls of tasks that still run, `asked` the keys of the questions that other tasks ask.
    They fail a function that returned; one that raised could not await its tasks. An unexpected exception
    stays the outcome, and so does one that a call of the context raised: it explains why the code did not
    reach its later lines.
    """
    left = [site for site in unawaited if not site.is_abandoned(after_pass=True)]
    if run.fault is None and left:
        run.fail(never_awaited(left))
    if run.fault is None and isinstance(outcome, Done) and (in_tasks or asked):
        run.fail(_left_in_tasks([*map(str, in_tasks), *(f"question {key!r}" for key in asked)]))
    fault = run.fault
    if not isinstance(fault, NotAwaited) or not isinstance(outcome, Failed):
        return outcome
    error = outcome.error
    if fault.__traceback__ is not None:  # it was raised, and the outcome is its consequence
        return outcome
    if isinstance(error, ToolError) and not isinstance(error, _CONTEXT_ERRORS):
        fault.__context__ = error
    else:
        error.add_note(str(fault))
        run.clear_fault()
    return outcome
