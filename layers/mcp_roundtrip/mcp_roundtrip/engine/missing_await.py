"""The coroutines that methods of an `AsyncContext` return, which raise if they are used before `await`.

A plain coroutine is truthy, so `if ctx.elicit("sure", ...)` without `await` would treat a question that was
never asked as a yes. A `ContextCall` raises NotAwaited instead, and so does a pass that leaves one behind.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from mcp_roundtrip.engine.call_site import CallSite

if TYPE_CHECKING:
    from asyncio import Task

    from mcp_roundtrip.engine.run import Run
    from mcp_roundtrip.errors import NotAwaited

T = TypeVar("T")
AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Coroutine[Any, Any, Any]])


class UnawaitedCalls:
    """The calls of a pass that nothing has awaited yet."""

    __slots__ = ("_sites", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self._sites: list[CallSite] = []

    def __bool__(self) -> bool:
        return bool(self._sites)

    def add(self, site: CallSite) -> None:
        """Add a new call."""
        self._sites.append(site)

    def remove(self, site: CallSite) -> bool:
        """Remove a call that is awaited or garbage collected; return False if it is not in the list."""
        sites = self._sites
        if sites and sites[-1] is site:  # nearly always: a call is awaited where it is made
            sites.pop()
            return True
        self._sites = [other for other in sites if other is not site]
        return len(self._sites) < len(sites)

    def take(self) -> list[CallSite]:
        """Remove all calls and return them."""
        sites, self._sites = self._sites, []
        return sites

    def discard(self, site: CallSite) -> None:
        """Fail the run because a call was garbage collected before anything awaited it."""
        if self.remove(site) and not site.is_abandoned():
            from mcp_roundtrip.engine.unawaited_errors import never_awaited

            self.run.fail(never_awaited([site]))

    def refuse_step(self, step: str, task: Task[Any] | None, arguments: Sequence[object]) -> None:
        """Raise NotAwaited if `step` depends on a call that nothing has awaited.

        It depends on the questions that the same task asked, and on the calls among its arguments.
        """
        passed = [value._site for value in arguments if isinstance(value, ContextCall)]
        for site in self._sites:
            is_question_of_task = site.kind == "question" and site.task is task
            if is_question_of_task or any(each is site for each in passed):
                from mcp_roundtrip.engine.unawaited_errors import unawaited_before_step

                raise self.run.fail(unawaited_before_step(site, step))


class ContextCall(Coroutine[Any, Any, T]):
    """A call of an `AsyncContext`, to be awaited once or to be handed to asyncio.

    Every other use raises NotAwaited, which also decides the outcome of the run. It is hashed by identity, as
    asyncio requires. The method's coroutine is created when the call is awaited, because Python warns about
    a coroutine that never runs.
    """

    __slots__ = ("_coroutine", "_site", "_unawaited")

    def __init__(self, unawaited: UnawaitedCalls, site: CallSite) -> None:
        self._unawaited = unawaited
        self._site = site
        self._coroutine: Coroutine[Any, Any, T] | None = None
        unawaited.add(site)

    def __await__(self) -> Any:
        return self._start().__await__()

    def _start(self) -> Coroutine[Any, Any, T]:
        """Return the method's coroutine, for the code or the task that awaits the call."""
        if self._coroutine is not None:
            from mcp_roundtrip.engine.unawaited_errors import awaited_twice  # not loaded by correct code

            raise self._unawaited.run.fail(awaited_twice(self._site))
        site = self._site
        self._unawaited.remove(site)
        coroutine: Coroutine[Any, Any, T] = site.method(site.context, *site.args, **site.kwargs)
        self._coroutine = coroutine
        return coroutine

    def send(self, value: Any) -> Any:
        """Resume the call, for its task."""
        return (self._coroutine or self._start()).send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the call, for its task."""
        return (self._coroutine or self._start()).throw(*error)

    def close(self) -> None:
        """End the call. A closed call need not be awaited."""
        (self._coroutine or self._start()).close()

    def __del__(self) -> None:
        if self._coroutine is None and self._unawaited:
            self._unawaited.discard(self._site)

    def __repr__(self) -> str:
        return f"<{self._site}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "cr_")):  # asyncio and debuggers read these attributes of a coroutine
            return getattr(self._site.method if name in _NAME_ATTRIBUTES else self._coroutine, name)
        raise self._misused(name)

    def _misused(self, name: str) -> NotAwaited:
        from mcp_roundtrip.engine.unawaited_errors import used_before_await  # not loaded by correct code

        error = used_before_await(self._site, name)
        self._unawaited.run.fail(error)
        return error


_NAME_ATTRIBUTES: Final = ("__name__", "__qualname__")

_OPERATIONS: Final = """
bool len iter aiter reversed contains getitem setitem delitem call str format bytes int float complex index
eq ne lt le gt ge neg pos abs invert round trunc enter aenter fspath reduce_ex
add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod
pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor
"""
"""The special methods with which Python uses a value. `__next__` is missing: asyncio would call it."""


def _refuse(name: str) -> Callable[..., Any]:
    def refused(self: ContextCall[Any], *_: object) -> Any:
        raise self._misused(name)

    return refused


for _name in _OPERATIONS.split():
    setattr(ContextCall, f"__{_name}__", _refuse(f"__{_name}__"))


# New in Python 3.12: makes `inspect.iscoroutinefunction` return True for the function.
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
            frame, branches = sys._getframe(1), context._branches
            task = branches.current_task()
            site = CallSite(kind, method, context, args, kwargs, frame.f_code, frame.f_lasti, task)
            return ContextCall(branches.unawaited, site)

        _mark_coroutine_function(call)
        return cast("AnyMethod", call)

    return decorate
