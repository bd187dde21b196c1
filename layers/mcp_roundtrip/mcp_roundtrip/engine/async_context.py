"""What an asynchronous tool sees: the names of `Context`, awaited where they journal or report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from uuid import UUID

from mcp_roundtrip.engine import effects
from mcp_roundtrip.engine.asking import ask
from mcp_roundtrip.engine.context_base import CallInfo, ContextBase
from mcp_roundtrip.engine.context_call import awaited
from mcp_roundtrip.engine.effects import Step
from mcp_roundtrip.engine.namespaced import NamespacedRequest
from mcp_roundtrip.engine.questions import (
    POLL_INTERVAL_MS,
    UNSET,
    Elicit,
    ElicitUrl,
    ListRoots,
    Message,
    Question,
    Root,
    Sample,
    Sampled,
    Unset,
)
from mcp_roundtrip.engine.run import Run, inside_function
from mcp_roundtrip.errors import ElicitationDeclined

if TYPE_CHECKING:
    from mcp_roundtrip.engine.async_replay import Branches
    from mcp_roundtrip.engine.retry import Retry

P = ParamSpec("P")
T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")


class AsyncContext(ContextBase):
    """Handed to an `async def` tool's parameter that is annotated with it.

    A question that has no answer yet parks its coroutine; other branches go on. The round ends when every
    branch is parked and every step in flight is journaled.
    """

    def __init__(self, run: Run, info: CallInfo, branches: Branches, prefix: str = "") -> None:
        super().__init__(run, info, prefix)
        self._branches = branches

    # -- branches -----------------------------------------------------------------------------------

    def branch(self, name: str) -> AsyncContext:
        """A context whose keys begin with `name` and a slash: one for each task of a TaskGroup."""
        return AsyncContext(self._run, self._info, self._branches, f"{self._claim(name)}/")

    @awaited()
    async def gather(self, branches: Mapping[str, Callable[[AsyncContext], Awaitable[T]]]) -> dict[str, T]:
        """Run functions of a context side by side, each in a branch of its own name; results by name."""
        return await self._branches.gather({name: work(self.branch(name)) for name, work in branches.items()})

    # -- questions ----------------------------------------------------------------------------------

    @overload
    async def elicit(
        self,
        key: str,
        message: str,
        model: type[T],
        *,
        default: T | Unset = UNSET,
        user_only: bool | None = None,
    ) -> T: ...
    @overload
    async def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any: ...
    @awaited("question")
    async def elicit(
        self, key: str, message: str, model: Any, *, default: Any = UNSET, user_only: bool | None = None
    ) -> Any:
        """See `Context.elicit`."""
        return await self._answer(Elicit(key, message, model, default, user_only))

    @awaited("question")
    async def confirm(self, key: str, message: str, *, default: bool | Unset = UNSET) -> bool:
        """See `Context.confirm`."""
        try:
            return await self._answer(Elicit(key, message, bool, default, user_only=True))
        except ElicitationDeclined:
            return False

    @awaited("question")
    async def elicit_url(
        self,
        key: str,
        message: str,
        url: str,
        *,
        done: Callable[[], bool | Awaitable[bool]],
        default: Unset | None = UNSET,
        poll_interval_ms: int | None = POLL_INTERVAL_MS,
    ) -> None:
        """See `Context.elicit_url`. `done` may be a coroutine function."""
        await self._answer(ElicitUrl(key, message, url, done, default, poll_interval_ms))

    @awaited("question")
    async def sample(
        self,
        key: str,
        messages: str | Sequence[Message],
        *,
        max_tokens: int,
        default: Sampled | Unset = UNSET,
        **options: Any,
    ) -> Sampled:
        """See `Context.sample`."""
        return await self._answer(Sample(key, messages, max_tokens, options, default))

    @awaited("question")
    async def list_roots(
        self, key: str = "roots", *, default: tuple[Root, ...] | Unset = UNSET
    ) -> tuple[Root, ...]:
        """See `Context.list_roots`."""
        return await self._answer(ListRoots(key, default))

    @awaited("question")
    async def request(
        self, key: str, method: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """See `Context.request`."""
        return await self._answer(NamespacedRequest(key, method, params or {}))

    @overload
    async def ask(self, first: Question[T1], /) -> tuple[T1]: ...
    @overload
    async def ask(self, first: Question[T1], second: Question[T2], /) -> tuple[T1, T2]: ...
    @overload
    async def ask(
        self, first: Question[T1], second: Question[T2], third: Question[T3], /
    ) -> tuple[T1, T2, T3]: ...
    @overload
    async def ask(
        self, first: Question[T1], second: Question[T2], third: Question[T3], fourth: Question[T4], /
    ) -> tuple[T1, T2, T3, T4]: ...
    @overload
    async def ask(self, *questions: Question[Any]) -> tuple[Any, ...]: ...
    @awaited("question")
    async def ask(self, *questions: Question[Any]) -> tuple[Any, ...]:
        """See `Context.ask`."""
        return await self._ask(*questions)

    async def _answer(self, question: Question[T]) -> T:
        answer: T = (await self._ask(question))[0]
        return answer

    async def _ask(self, *questions: Question[Any]) -> tuple[Any, ...]:
        asking, look = ask(self._run, self._allowed(questions), self._prefix), None
        while True:
            is_done = look and await self._is_done(*look)
            try:
                look = asking.send(is_done)
            except StopIteration as end:
                answers = end.value
                break
        if answers is None:
            await self._branches.park({self._prefix + question.key for question in questions})
        return tuple(answers)

    async def _is_done(self, question: ElicitUrl | None, after_ms: float) -> bool:
        await self._branches.pause(after_ms, ends_pass=False)
        if question is None:
            return False
        token = inside_function.set(("question", self._prefix + question.key))
        try:
            with self._branches.step_in_flight():
                done = question.done()
                return bool(await done if isinstance(done, Awaitable) else done)
        finally:
            inside_function.reset(token)

    # -- effects ------------------------------------------------------------------------------------

    @overload
    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, at_most_once: bool, **kwargs: Any
    ) -> Any: ...
    @overload
    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, retry: Retry | None, **kwargs: Any
    ) -> Any: ...
    @overload
    async def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @awaited("step")
    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """See `Context.step`. `function` may be a coroutine function; a plain one runs in the event loop."""
        at_most_once, retry = kwargs.pop("at_most_once", False), kwargs.pop("retry", None)
        key = self._claim(name)
        replayed = effects.replayed(self._run, key, function)
        if replayed is not None:
            return replayed[0]
        step = Step(key, function, at_most_once, retry)
        step.check(self._run)
        if self._run.unawaited:
            await self._branches.refuse_unawaited(step.key, (*args, *kwargs.values()))
        await self._checkpoint()
        step.begin(self._run)
        while True:
            await self._branches.pause(*step.pause_ms(self._run))
            with self._branches.step_in_flight():
                try:
                    value = await self._work(step, args, kwargs)
                except Exception as error:
                    step.failed(self._run, error)
                else:
                    return step.settle(self._run, value)

    async def _work(self, step: Step, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        token = inside_function.set(("step", step.key))
        try:
            value = step.function(*args, **kwargs)
            return await value if isinstance(value, Awaitable) else value
        finally:
            inside_function.reset(token)

    @awaited()
    async def run_as_task(self, *, ttl_ms: int = 3_600_000) -> None:
        """See `Context.run_as_task`."""
        if effects.request_task(self._run, self._prefix, ttl_ms):
            await self._branches.park()

    @awaited("sleep")
    async def sleep(self, key: str, duration_ms: int) -> None:
        """See `Context.sleep`."""
        if effects.begin_sleep(self._run, self._claim(key), duration_ms):
            await self._branches.park()

    @awaited()
    async def checkpoint(self, *, needs_ms: float | None = None) -> None:
        """See `Context.checkpoint`."""
        await self._checkpoint(needs_ms)

    async def _checkpoint(self, needs_ms: float | None = None) -> None:
        if self._run.request_checkpoint(needs_ms):
            await self._branches.park()

    @awaited("recorded value")
    async def now(self, key: str) -> datetime:
        """See `Context.now`."""
        return effects.now(self._run, self._claim(key))

    @awaited("recorded value")
    async def uuid(self, key: str) -> UUID:
        """See `Context.uuid`."""
        return effects.uuid(self._run, self._claim(key))

    @awaited("recorded value")
    async def random(self, key: str) -> float:
        """See `Context.random`."""
        return effects.random(self._run, self._claim(key))

    @awaited("signed link")
    async def signed_link(self, key: str, url: str, *, ttl_ms: int = 3_600_000) -> str:
        """See `Context.signed_link`."""
        return effects.signed_link(self._run, self._claim(key), url, ttl_ms)

    @awaited()
    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """See `Context.progress`."""
        self._run.reports.progress(done, total, message, news=self._run.should_report())

    @awaited()
    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """See `Context.log`."""
        self._run.reports.log(level, data, logger, news=self._run.should_report())
