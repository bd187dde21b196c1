"""Records where and how a method of an `AsyncContext` was called, for errors about a missing `await`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import Task


class CallSite:
    """One call of a context's method. Its text is built only for an error message.

    `kind` is the word for what the key names, such as "question", or "" if the call has no key. `task` is the
    calling task, None in a thread without an event loop.
    """

    __slots__ = ("_code", "_offset", "args", "context", "kind", "kwargs", "method", "task")

    def __init__(
        self,
        kind: str,
        method: Callable[..., Any],
        context: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        code: CodeType,
        offset: int,
        task: Task[Any] | None,
    ) -> None:
        self.kind = kind
        self.method = method
        self.context = context
        self.args = args
        self.kwargs = kwargs
        self._code = code
        self._offset = offset
        self.task = task

    def __str__(self) -> str:
        place = f"{self._code.co_filename}:{self._line()}"
        if not self.kind:
            return f"ctx.{self.method.__name__} ({place})"
        keys = " and ".join(map(repr, self._keys()))
        return f"{self.kind} {keys} (ctx.{self.method.__name__}, {place})"

    def _keys(self) -> list[str]:
        if self.method.__name__ == "ask":
            keys = [getattr(question, "key", question) for question in self.args]
        elif "key" in self.kwargs:
            keys = [self.kwargs["key"]]
        else:
            keys = [self.args[0] if self.args else "roots"]  # the default of list_roots
        return [f"{self.context._prefix}{key}" for key in keys]

    def _line(self) -> int:
        for start, end, line in self._code.co_lines():
            if start <= self._offset < end and line is not None:
                return line
        return self._code.co_firstlineno

    @property
    def remedy(self) -> str:
        """The code to write instead."""
        return f"write `await ctx.{self.method.__name__}(...)`"

    def is_abandoned(self, *, after_pass: bool = False) -> bool:
        """Return whether the calling task was cancelled or failed, so that it could not await the call.

        With `after_pass`, that includes every task that still runs.
        """
        if self.task is None:
            return False
        if not self.task.done():
            return after_pass or self.task.cancelling() > 0
        return self.task.cancelled() or self.task.exception() is not None
