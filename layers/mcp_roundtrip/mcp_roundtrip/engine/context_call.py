"""What the calls of an `AsyncContext` return: coroutines that cannot be used before they are awaited.

A plain coroutine is true, so `if ctx.elicit("sure", ...)` without `await` would take a question that was
never asked for a yes. A call here raises NotAwaited instead, and so does a pass that leaves one behind.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from asyncio import Task

    from mcp_roundtrip.engine.run import Run
    from mcp_roundtrip.errors import NotAwaited

T = TypeVar("T")
AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Coroutine[Any, Any, Any]])

Origin = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], CodeType, int, "Task[Any] | None"]
"""Kind, method, arguments (the context first) and keyword arguments of a call; the code that made it, the
offset there, and its task. Only error messages read it, so nothing in it is worked out before."""


class ContextCall(Coroutine[Any, Any, T]):
    """A call of an `AsyncContext`: to be awaited, or handed to asyncio, once.

    It is hashed by identity, as asyncio needs it. Each misuse raises NotAwaited, which also decides the run.
    The method's coroutine is made when it is awaited: one that never runs would make Python warn.
    """

    __slots__ = ("_coroutine", "_origin", "_run")

    def __init__(self, run: Run, origin: Origin) -> None:
        self._run = run
        self._origin = origin
        self._coroutine: Coroutine[Any, Any, T] | None = None
        run.unawaited.append(origin)

    def __await__(self) -> Any:
        return self.take().__await__()

    def take(self) -> Coroutine[Any, Any, T]:
        """The coroutine, for what awaits it, or for the task that is made of it."""
        if self._coroutine is not None:
            from mcp_roundtrip.engine.not_awaited import twice  # correct code needs none of its messages

            raise self._run.fail(twice(self._origin))
        origin, unawaited = self._origin, self._run.unawaited
        if unawaited and unawaited[-1] is origin:  # nearly always: it is awaited where it is made
            unawaited.pop()
        else:
            self._run.unawaited = [other for other in unawaited if other is not origin]
        coroutine: Coroutine[Any, Any, T] = origin[1](*origin[2], **origin[3])
        self._coroutine = coroutine
        return coroutine

    def send(self, value: Any) -> Any:
        """Resume the call, as its task does."""
        return (self._coroutine or self.take()).send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the call, as its task does that is cancelled."""
        return (self._coroutine or self.take()).throw(*error)

    def close(self) -> None:
        """End the call. One that is closed need not be awaited."""
        (self._coroutine or self.take()).close()

    def __del__(self) -> None:
        if self._coroutine is None and self._run.unawaited:
            from mcp_roundtrip.engine.not_awaited import discarded

            discarded(self._run, self._origin)

    def __repr__(self) -> str:
        from mcp_roundtrip.engine.not_awaited import described

        return f"<{described(self._origin)}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "cr_")):  # asyncio and debuggers look at coroutines so
            return getattr(self._origin[1] if name in _NAMES else self._coroutine, name)
        raise self._misused(name)

    def _misused(self, name: str) -> NotAwaited:
        from mcp_roundtrip.engine.not_awaited import misused

        error = misused(self._origin, name)
        self._run.fail(error)
        return error


_NAMES: Final = ("__name__", "__qualname__")

_OPERATIONS: Final = """
bool len iter aiter reversed contains getitem setitem delitem call str format bytes int float complex index
eq ne lt le gt ge neg pos abs invert round trunc enter aenter fspath reduce_ex
add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod
pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor
"""
"""What Python does with values by their special methods. `__next__` is missing: asyncio would call it."""


def _refuse(name: str) -> Callable[..., Any]:
    def refused(self: ContextCall[Any], *_: object) -> Any:
        raise self._misused(name)

    return refused


for _name in _OPERATIONS.split():
    setattr(ContextCall, f"__{_name}__", _refuse(f"__{_name}__"))


# Of Python 3.12: `inspect.iscoroutinefunction` is true of the marked function.
_mark: Callable[[Any], Any] = getattr(inspect, "markcoroutinefunction", lambda function: function)


def awaited(kind: str = "") -> Callable[[AnyMethod], AnyMethod]:
    """Have a coroutine method of `AsyncContext` return ContextCalls.

    `kind` is what error messages call one that has a key. To type checkers the method is what it was.
    """

    def decorated(method: AnyMethod) -> AnyMethod:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> ContextCall[Any]:
            context = args[0]
            frame, task = sys._getframe(1), context._branches.current_task()
            return ContextCall(context._run, (kind, method, args, kwargs, frame.f_code, frame.f_lasti, task))

        _mark(call)
        return cast("AnyMethod", call)

    return decorated
